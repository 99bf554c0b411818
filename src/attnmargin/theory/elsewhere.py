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
    ("C", "Lemma 1", "Acyclic data: no finite weights are perfect, but W_mm is in the limit."),
    ("C", "Theorem 1", "Acyclic data: the best weights of growing size follow the priorities."),
    ("C", "Lemma 2", "The part that composes and the part that retrieves are orthogonal."),
    ("C", "Theorem 2", "All data: priorities between components, shares inside them."),
    ("C", "Lemma 3", "The loss is convex, strictly so inside components."),
    ("C", "Theorem 3", "Gradient descent does the same from any start, with the log-loss."),
    ("C", "Theorem 4", "With the log-loss no finite weights are at rest."),
    ("C", "Lemma 7", "With the log-loss there is one finite best way to share."),
    ("D", "Definition 1", "Tokens are positive, negative or irrelevant by where they occur."),
    ("D", "Lemma 2", "One gradient step writes a token's importance into its embedding."),
    ("D", "Lemma 3", "Each selection has one shortest direction that makes it."),
    ("D", "Assumption 4", "Each sequence has one token that gives the label away."),
    ("D", "Theorem 5", "The flow of the ⟨cls⟩ embedding selects the tokens that matter."),
    ("D", "Lemma 6", "The flow never selects all tokens."),
    ("D", "Lemma 11", "After the first step, embeddings are of bounded length."),
    ("D", "Lemma 12", "After the first step, the loss is that of the tokens' importance."),
    ("D", "Lemma 13", "The ⟨cls⟩ embedding grows without end."),
    ("D", "Lemma 14", "Where the flow settles, it selects every token that matters."),
    ("D", "Definition 15", "Behind the selected tokens come those of the second place."),
    ("D", "Definition 16", "The selected tokens score higher than those in second place."),
    ("D", "Lemma 18", "Where the flow settles, it has the largest margin of its selection."),
    ("D", "Lemma 19", "A larger margin without irrelevant tokens keeps them out."),
    ("D", "Lemma 21", "The tokens that matter can be separated with a margin of 1/4n."),
)


def other_papers() -> list[Check]:
    """Return the rows of papers C and D for data of papers A and B."""
    notes = {"C": _NEXT_TOKEN, "D": _EMBEDDINGS}
    return [
        Check(paper, name, meaning, Outcome.UNDECIDABLE, {}, notes[paper])
        for paper, name, meaning in _ROWS
    ]
