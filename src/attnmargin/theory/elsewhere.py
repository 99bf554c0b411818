"""Papers C and D: statements about other kinds of data, as rows of the table."""

from attnmargin.theory.check import Check, Outcome

_NEXT_TOKEN = "about next-token data, a vocabulary and what comes next: see check_next_token"
_EMBEDDINGS = "about trained embeddings of a vocabulary, with labels: see check_embeddings"

_ROWS = (
    ("C", "Assumption 1", "The loss falls with the score of the right token."),
    ("C", "Assumption 2", "The next token always occurs in the sequence."),
    ("C", "Assumption 3", "Each class scores highest at its own token."),
    ("C", "Assumption 4", "The head reads every token of the vocabulary exactly."),
    ("C", "Acyclicity", "No two tokens dominate each other, whatever the last token is."),
    ("C", "(Graph-SVM) is feasible", "Some weights respect all priorities between tokens."),
    ("C", "Theorem 1", "Acyclic data: the best weights of growing size follow the priorities."),
    ("C", "Theorem 2", "All data: priorities between components, shares inside them."),
    ("C", "Theorem 3", "Gradient descent does the same from any start, with the log-loss."),
    ("D", "Definition 1", "Tokens are positive, negative or irrelevant by where they occur."),
    ("D", "Assumption 4", "Each sequence has one token that gives the label away."),
    ("D", "Lemma 2", "One gradient step writes a token's importance into its embedding."),
    ("D", "Theorem 5", "The flow of the ⟨cls⟩ embedding selects the tokens that matter."),
    ("D", "Lemma 6", "The flow never selects all tokens."),
    ("D", "Lemma 19", "A larger margin without irrelevant tokens keeps them out."),
)  # fmt: skip


def other_papers() -> list[Check]:
    """Return the rows of papers C and D for data of papers A and B."""
    notes = {"C": _NEXT_TOKEN, "D": _EMBEDDINGS}
    return [
        Check(paper, name, meaning, Outcome.UNDECIDABLE, {}, notes[paper])
        for paper, name, meaning in _ROWS
    ]
