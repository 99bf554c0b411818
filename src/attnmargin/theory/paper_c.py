"""Paper C, "Mechanics of Next Token Prediction with Self-Attention", as checks."""

from typing import Any

import torch
from torch import Tensor

from attnmargin.attention.losses import Exponential, Linear, Log, Logistic, Loss, Squared
from attnmargin.base.arrays import Array
from attnmargin.graphs import cyclic_basis, cyclic_correction
from attnmargin.graphs.cyclic import choices
from attnmargin.margin.certificate import Status
from attnmargin.theory.check import Check, Outcome, decided, fails, holds, number, outcome
from attnmargin.theory.next_token_facts import NextTokenFacts
from attnmargin.theory.paper_a import falling_between

# Units in the last place of ‖c‖ ‖e‖ within which scores count as equal.
_ROUNDING = 16
# How far C Eᵀ may be from the identity.
_IDENTITY = 1e-9
# Largest inner product of two matrices that Newton's method and a solver leave orthogonal, relative
# to their norms.
_ORTHOGONAL = 1e-10
# Length R at which Lemma 1 is evaluated: e^{−R} is far below the score gaps of ordinary heads.
_FAR = 30.0


def _row(name: str, meaning: str, good: bool, numbers: dict[str, float], note: str = "") -> Check:
    found = {word: number(value) for word, value in numbers.items()}
    return Check("C", name, meaning, outcome(torch.tensor(good)), found, note)


def assumption_1(facts: NextTokenFacts) -> Check:
    """Check that the loss falls, with a bounded slope."""
    meaning = "The loss falls with the score of the right token, and its slope is bounded."
    if isinstance(facts.loss, Log):
        note = "−log u falls, but its slope 1/u is not bounded near u = 0; Theorem 3 does not ask"
        return _row("Assumption 1", meaning, False, {}, note)
    known = isinstance(facts.loss, Logistic | Exponential | Linear | Squared)
    if not known:
        return Check("C", "Assumption 1", meaning, Outcome.UNDECIDABLE, {}, "a loss of its own")
    scores = torch.eye(2, dtype=torch.float64) if facts.C is None else facts.C @ facts.E.mT
    falling = falling_between(facts.loss, scores.min(), scores.max(), _rounding(facts))
    note = "at the score 1 the slope of (1 − u)² vanishes" if fails(falling) else ""
    return Check("C", "Assumption 1", meaning, falling, {"largest score": scores.max()}, note)


def _rounding(facts: NextTokenFacts) -> Tensor:
    """Compute within which distance rounding hides whether scores are equal; zero without C."""
    if facts.C is None:
        return torch.zeros((), dtype=torch.float64)
    sizes = [torch.linalg.vector_norm(x, dim=-1).max() for x in (facts.C, facts.E)]
    return _ROUNDING * torch.finfo(torch.float64).eps * sizes[0] * sizes[1]


def assumption_2(facts: NextTokenFacts) -> Check:
    """Check that labels are realisable."""
    meaning = "The next token always occurs in the sequence."
    wrong = facts.graphs.unrealisable
    return _row("Assumption 2", meaning, wrong == 0, {"sequences without their label": wrong})


def assumption_3(facts: NextTokenFacts) -> Check:
    """Check that each class scores highest at its own token."""
    meaning = "Each class scores highest at its own token."
    if facts.C is None:
        good = bool(holds(assumption_4(facts)))
        return _row("Assumption 3", meaning, good, {}, "without C: that with C Eᵀ = I")
    least = float(facts.gaps.min())
    return _row("Assumption 3", meaning, least > 0, {"smallest score gap": least})


def assumption_4(facts: NextTokenFacts) -> Check:
    """Check ``C Eᵀ = I``."""
    meaning = "The head reads every token of the vocabulary exactly: C Eᵀ = I."
    if facts.C is not None:
        eye = torch.eye(len(facts.E), dtype=torch.float64)
        off = float((facts.C @ facts.E.mT - eye).abs().max())
        return _row("Assumption 4", meaning, off <= _IDENTITY, {"largest error of C Eᵀ": off})
    sizes = torch.linalg.svdvals(facts.E)
    K, d = facts.E.shape
    least = float(sizes[-1]) if d >= K else 0.0
    note = "without C: whether some C does it, which needs independent embeddings"
    good = least > _IDENTITY * float(sizes[0])
    return _row("Assumption 4", meaning, good, {"least singular value of E": least}, note)


def acyclicity(facts: NextTokenFacts) -> Check:
    """Check that all graphs are acyclic."""
    meaning = "No two tokens dominate each other, whatever the last token is."
    graphs = facts.graphs
    numbers = {
        "components with several tokens": float((graphs.size > 1).sum()),
        "tokens of the largest": float(graphs.size.max()),
    }
    return _row("Acyclicity", meaning, graphs.acyclic, numbers)


def feasible(facts: NextTokenFacts) -> Check:
    """Check that (Graph-SVM) has a solution."""
    meaning = "Some weights respect all priorities between tokens."
    good, bad = facts.solution.feasible, facts.solution.infeasible
    numbers = {"‖W_mm‖": facts.solution.value} if bool(good) else {}
    return Check("C", "(Graph-SVM) is feasible", meaning, outcome(good, good | bad), numbers)


def lemma_1(facts: NextTokenFacts) -> Check:
    """Check Lemma 1: ``L(W) > L⋆`` for finite W, and ``L(R W_mm) → L⋆``.

    It is true only if some sequence has a token besides its label (docs/errata.md).
    """
    meaning = "Acyclic data: no finite weights are perfect, but W_mm is in the limit."
    good = facts.ordered and _all(facts, acyclicity, assumption_2, assumption_3)
    found = {}
    if facts.graphs.realisable:
        zero = facts.E.new_zeros(facts.E.shape[-1], facts.E.shape[-1])
        found = {"L⋆": facts.loss.value(facts.best).mean(), "L(0) − L⋆": facts.excess(zero)}
        if facts.solution.status == Status.OPTIMAL:
            found[f"L(R W_mm) − L⋆ at R = {_FAR:g}"] = facts.excess(_FAR * facts.solution.W)
    return Check("C", "Lemma 1", meaning, _with_1(facts, good), found)


def lemma_2(facts: NextTokenFacts) -> Check:
    """Check that ``W_cyc`` and ``W_mm`` are orthogonal."""
    meaning = "The part that composes and the part that retrieves are orthogonal."
    known = facts.correction is not None and facts.solution.status == Status.OPTIMAL
    if not known:
        note = "labels are not realisable, or (Graph-SVM) is not feasible"
        return Check("C", "Lemma 2", meaning, Outcome.UNDECIDABLE, {}, note)
    assert facts.correction is not None
    inner = float((facts.correction * facts.solution.W).sum().abs())
    size = float(torch.linalg.matrix_norm(facts.correction))
    numbers = {"|⟨W_cyc, W_mm⟩|": inner, "‖W_cyc‖": size}
    allowed = _ORTHOGONAL * (1.0 + size * float(facts.solution.value))
    return _row("Lemma 2", meaning, inner <= allowed, numbers, "W_cyc is that of the log-loss")


def lemma_3(facts: NextTokenFacts) -> Check:
    """Check Lemma 3: convexity of the log-loss."""
    meaning = "The loss is convex, strictly so inside components."
    good = isinstance(facts.loss, Log) and _all(facts, assumption_2, assumption_4)
    return _row("Lemma 3", meaning, good, {})


def _all(facts: NextTokenFacts, *checks: Any) -> bool:
    return all(bool(holds(check(facts))) for check in checks)


def theorem_1(facts: NextTokenFacts) -> Check:
    """Check Theorem 1: regularisation paths of acyclic data."""
    meaning = "Acyclic data: the best weights of growing size follow the priorities."
    rest = facts.ordered and _all(facts, acyclicity, assumption_2, assumption_3, feasible)
    return Check("C", "Theorem 1", meaning, _with_1(facts, rest), {}, _PATHS)


_PATHS = "about regularisation paths, not about descent"


def _with_1(facts: NextTokenFacts, rest: bool) -> Any:
    """Decide what needs Assumption 1 and the rest."""
    a, others = assumption_1(facts), torch.tensor(rest)
    return outcome(holds(a) & others, decided(a) | ~others)


def theorem_2(facts: NextTokenFacts) -> Check:
    """Check Theorem 2: regularisation paths of general data, where ``W_cyc`` is finite.

    On cyclic data it is decided by :func:`attnmargin.graphs.composition.composition`.
    """
    meaning = "All data: the best weights follow priorities between components, shares inside."
    rest = facts.ordered and _all(facts, assumption_2, assumption_4, feasible)
    finite, a = facts.composed.finite, assumption_1(facts)
    good = holds(a) & torch.tensor(rest and finite is True)
    refuted = fails(a.outcome) | torch.tensor(not rest or finite is False)
    if finite is None:
        note = "whether this loss has a finite W_cyc is not known"
    else:
        note = _PATHS if finite else "with this loss no finite W composes best: there is no W_cyc"
    numbers = {}
    if bool(good) and not facts.graphs.acyclic:
        W = cyclic_correction(facts.E, facts.sequences, facts.labels, facts.graphs, facts.loss)
        numbers["‖W_cyc‖"] = torch.linalg.matrix_norm(W)
    return Check("C", "Theorem 2", meaning, outcome(good, good | refuted), numbers, note)


def _setting(facts: NextTokenFacts) -> bool:
    """Whether the setting of Theorem 3 holds, apart from the step size."""
    good = isinstance(facts.loss, Log) and facts.ordered
    return good and _all(facts, assumption_2, assumption_4, feasible)


def theorem_3(facts: NextTokenFacts) -> Check:
    """Check Theorem 3: gradient descent with the log-loss and ``η ≤ 1/L``.

    The step size is that of its proof (Lemma 5); printed is any constant (docs/errata.md).
    """
    meaning = "Gradient descent does the same from any start, with the log-loss and small steps."
    numbers = {"pairs i ⇒ j": float(len(facts.graphs.dominance[0])), **_rates(facts)}
    return _row("Theorem 3", meaning, _setting(facts) and facts.small_steps, numbers)


def _rates(facts: NextTokenFacts) -> dict[str, float]:
    """Return the largest step size, and the one that was given."""
    given = {} if isinstance(facts.lr, str) else {"η": facts.lr}
    return {"1/L": facts.rate, **given}


def theorem_4(facts: NextTokenFacts) -> Check:
    """Check Theorem 4: no stationary point, and ``‖W(τ)‖ → ∞`` for ``η ≤ 1/L``."""
    meaning = "With the log-loss no finite weights are at rest, and training grows without end."
    good = _setting(facts)
    numbers = _rates(facts)
    if good:
        numbers["−⟨∇L(0), W_mm⟩"] = float(facts.pull(facts.solution.W))
    return _row("Theorem 4", meaning, good and facts.small_steps, numbers)


def lemma_7(facts: NextTokenFacts) -> Check:
    """Check Lemma 7: ``W_cyc`` of the log-loss is unique and finite."""
    meaning = "With the log-loss there is one finite best way to share inside components."
    good = isinstance(facts.loss, Log) and _all(facts, assumption_2, assumption_4)
    numbers = {}
    if facts.correction is not None:
        numbers["‖W_cyc‖"] = float(torch.linalg.matrix_norm(facts.correction))
    if good and not facts.graphs.acyclic:
        numbers["least curvature on S_cyc"] = _curvature(facts)
    return _row("Lemma 7", meaning, good, numbers, "its proof needs Assumptions 2 and 4 alone")


def _curvature(facts: NextTokenFacts) -> float:
    """Compute the least eigenvalue on ``S_cyc`` of the Hessian of the cyclic loss at ``W_cyc``."""
    assert facts.correction is not None
    given, nodes = choices(facts.samples, facts.graphs)
    token, last = (torch.from_numpy(x[nodes]) for x in (facts.graphs.token, facts.graphs.last))
    left, right = facts.E[token], facts.E[last]
    logits = torch.einsum("md,de,me->m", left, facts.correction, right)
    hessian = torch.from_numpy(given.slope(logits.numpy())[1])
    A = torch.einsum("md,rde,me->mr", left, cyclic_basis(facts.E, facts.graphs), right)
    return float(torch.linalg.eigvalsh(A.mT @ hessian @ A)[0])


_CHECKS = (
    assumption_1,
    assumption_2,
    assumption_3,
    assumption_4,
    acyclicity,
    feasible,
    lemma_1,
    theorem_1,
    lemma_2,
    theorem_2,
    lemma_3,
    theorem_3,
    theorem_4,
    lemma_7,
)


def check_next_token(
    E: Array,
    sequences: Any,
    labels: Any,
    C: Array | None = None,
    loss: str | Loss = "log",
    lr: float | str = "auto",
) -> list[Check]:
    """Check every assumption and theorem of paper C on next-token data.

    Args:
        E: embeddings ``(K, d)``; sequences, labels: as in :func:`attnmargin.token_graphs`.
        C: classifier ``(K, d)``; without it ``C Eᵀ = I``.
        loss: of the training; lr: its constant step size η, without normalisation, or "auto"
            for 1/L as in :func:`attnmargin.train`.

    Returns:
        A list of :class:`Check`, in the order of the paper, with the numbers that decide.

    Example:
        >>> import attnmargin as am, torch
        >>> checks = am.theory.check_next_token(torch.eye(3), [[0, 1, 2], [1, 2]], [0, 1])
        >>> print(next(check for check in checks if check.name == "Theorem 3"))
        C: Theorem 3: holds (pairs i ⇒ j 3, 1/L 0.288675)
    """
    facts = NextTokenFacts(E, sequences, labels, C, loss, lr)
    return [check(facts) for check in _CHECKS]
