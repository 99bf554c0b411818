"""Paper D, "Attention with Trained Embeddings Provably Selects Important Tokens", as checks."""

import math
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.embeddings.model import EmbeddingModel, FirstStep, first_step, other_selections
from attnmargin.theory.check import Check, Outcome, number, outcome

# The probability δ with which a statement may fail, and selections that Lemma 19 is tried on.
_DELTA, _MOST = 0.1, 4096
# How far the length of v may be from one; float32 embeddings have such lengths.
_UNIT = 1e-6


@final
class EmbeddingFacts:
    """What the checks need to know about sequences with embeddings; computed once."""

    def __init__(self, model: EmbeddingModel, lr: float) -> None:
        self.model, self.lr = model, lr
        self.statistics = model.statistics()
        self.n, self.T = model.ids.shape
        self.S, self.d = int((self.statistics.count > 0).sum()), model.E.shape[1]

    @cached_property
    def step(self) -> FirstStep:
        """One gradient step from here."""
        return first_step(self.model, self.lr)

    @cached_property
    def important(self) -> Tensor:
        """Positions of tokens that occur with one label only, bool ``(n, T)``."""
        complete = torch.from_numpy(self.statistics.complete).to(self.model.ids.device)
        return complete[self.model.ids] & self.model.visible

    @cached_property
    def one_each(self) -> bool:
        """Assumption 4."""
        irrelevant = torch.from_numpy(self.statistics.irrelevant).to(self.model.ids.device)
        others = irrelevant[self.model.ids] | self.important | ~self.model.visible
        return bool((self.important.sum(-1) == 1).all() and others.all())

    @property
    def concentrated(self) -> float:
        """The d of Lemma 2: ``(2 log(|S|²/δ))²``, at least 256 for what follows from it."""
        return float((2.0 * math.log(self.S**2 / _DELTA)) ** 2)

    @property
    def typical(self) -> bool:
        """Whether v has length one, and E and p obey (14) as in the proof of Lemma 2."""
        E, p, v = (x.double() for x in (self.model.E, self.model.p, self.model.v))
        largest = max(float((E @ v).abs().max()), float((E @ p).abs().max()), float((p @ v).abs()))
        short = float(torch.cat((E, p.unsqueeze(0))).norm(dim=-1).max()) <= 2.0
        equal = bool(self.model.visible.all())
        return short and equal and largest <= self.d**-0.25 and abs(float(v.norm()) - 1.0) < _UNIT

    @property
    def wide(self) -> float:
        """log₁₀ of the d of Theorem 5."""
        polynomial = 8.0 * math.log10(88.0 * self.lr**2 + 111.0 * self.lr + 2.0)
        return max(math.log10(max(256.0, self.concentrated, self.S + 3.0)), polynomial)


def _row(name: str, meaning: str, good: bool, numbers: dict[str, float], note: str = "") -> Check:
    found = {word: number(value) for word, value in numbers.items()}
    return Check("D", name, meaning, outcome(torch.tensor(good)), found, note)


def definition_1(facts: EmbeddingFacts) -> Check:
    """Count the kinds of tokens."""
    kinds = facts.statistics.kind.tolist()
    numbers = {kind: float(kinds.count(kind)) for kind in sorted(set(kinds))}
    meaning = "Tokens are positive, negative or irrelevant by where they occur."
    return _row("Definition 1", meaning, True, numbers)


def assumption_4(facts: EmbeddingFacts) -> Check:
    """Check that every sequence has one important token."""
    meaning = "Each sequence has one token that gives the label away, and all others say nothing."
    counts = facts.important.sum(-1)
    numbers = {"least per sequence": float(counts.min()), "most": float(counts.max())}
    return _row("Assumption 4", meaning, facts.one_each, numbers)


def lemma_2(facts: EmbeddingFacts) -> Check:
    """Check Lemma 2: the first step."""
    meaning = "One gradient step writes a token's importance into its embedding."
    step = facts.step
    numbers = {
        "d": float(facts.d),
        "d that it asks for": facts.concentrated,
        "largest error": max(float(step.error_E.max()), float(step.error_p)),
        "bound": step.bound,
    }
    note = f"with δ = {_DELTA:g}; the step itself is {'within' if step.within else 'beyond'} it"
    good = facts.d >= facts.concentrated and facts.typical
    return _row("Lemma 2", meaning, good, numbers, note)


def theorem_5(facts: EmbeddingFacts) -> Check:
    """Check Theorem 5: what the flow selects."""
    meaning = "The flow of the ⟨cls⟩ embedding selects the tokens that matter."
    least = 4.0 * facts.n**2 * facts.T**2
    good = facts.one_each and facts.typical and facts.lr >= least
    good = good and math.log10(facts.d) >= facts.wide
    numbers = {"η₀": float(facts.lr), "η₀ that it asks for": least,
               "log₁₀ of the d that it asks for": facts.wide}  # fmt: skip
    note = "no width of use is so large; D:theorem5 shows the conclusion at d = 256"
    return _row("Theorem 5", meaning, good, numbers, note)


def lemma_6(facts: EmbeddingFacts) -> Check:
    """Check Lemma 6: the flow does not select everything."""
    good = theorem_5(facts).outcome == Outcome.HOLDS
    return _row("Lemma 6", "The flow never selects all tokens.", good, {}, "where Theorem 5 holds")


def lemma_19(facts: EmbeddingFacts) -> Check:
    """Check Lemma 19: the margin condition."""
    meaning = "A larger margin without irrelevant tokens keeps them out."
    if not facts.one_each:
        return Check("D", "Lemma 19", meaning, Outcome.UNDECIDABLE, {}, "Assumption 4 fails")
    model = facts.step.model
    try:
        other = other_selections(model, facts.important, _MOST)
    except InputError:
        note = f"more than {_MOST} other selections"
        return Check("D", "Lemma 19", meaning, Outcome.UNDECIDABLE, {}, note)
    own = float(model.max_margin(facts.important).value)
    if math.isnan(own) or math.isnan(other):
        note = "the margin of a selection was not found to full accuracy"
        return Check("D", "Lemma 19", meaning, Outcome.UNDECIDABLE, {}, note)
    numbers = {"‖p̂‖": own, "least ‖p̂′‖": other}
    return _row("Lemma 19", meaning, own < other, numbers, "its margin condition alone")


_CHECKS = (definition_1, assumption_4, lemma_2, theorem_5, lemma_6, lemma_19)


def check_embeddings(model: EmbeddingModel, lr: float) -> list[Check]:
    """Check every assumption and theorem of paper D on sequences with embeddings.

    Args:
        model: before the first step; lr: the rate η₀ of that step.

    Returns:
        A list of :class:`Check`, in the order of the paper, with the numbers that decide.

    Example:
        >>> import attnmargin as am
        >>> tokens = am.embeddings.important_tokens(4, 3, seed=0)
        >>> model = am.embeddings.random_embeddings(tokens, d=512)
        >>> checks = am.theory.check_embeddings(model, lr=1.0)
        >>> [str(check.outcome) for check in checks[1:4]]
        ['holds', 'holds', 'fails']
    """
    facts = EmbeddingFacts(model, lr)
    return [check(facts) for check in _CHECKS]
