"""Paper A, Sections 5 and 6: local directions, the conjecture, nonlinear heads, as checks."""

import torch
from torch import Tensor

from attnmargin.attention.score import low_tokens
from attnmargin.margin.norms import Frobenius
from attnmargin.theory.check import Check, Outcome, fails, holds, number, outcome
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import assumption_b1, regular, theorem_1, under_a


def slack(facts: Facts) -> Tensor:
    """Compute δ: half the distance of the nearest non-support token to the margin."""
    problem, tight = facts.solution.problem, facts.solution.support
    beyond = (facts.margins - 1.0).where(problem.mask & ~tight, torch.inf)
    return 0.5 * beyond.amin(-1) if problem.M else torch.full_like(facts.gap, torch.inf)


def support_gap(facts: Facts) -> Tensor:
    """Compute the least distance of a selected score to its support tokens', ``(*B,)``."""
    guards = facts.gamma.where(facts.support, -torch.inf).amax(-1)
    gaps = (facts.gamma.amax(-1) - guards).where(torch.isfinite(guards), torch.inf)
    return gaps.amin(facts.inner(gaps))


def largest_pair(facts: Facts, q: float = 2.0) -> Tensor:
    """Compute ``max ‖x_it z_iᵀ‖_{q,q}``, ``(*B,)``: the product of the two vector norms."""
    data = facts.data
    tokens = torch.linalg.vector_norm(data.X, q, dim=-1).amax(-1)
    query = torch.linalg.vector_norm(data.z, q, dim=-1)
    sizes = (tokens.unsqueeze(-1) if data.z.ndim == data.X.ndim else tokens) * query
    return sizes.amax(facts.inner(sizes))


def only_one(facts: Facts) -> Check:
    """Check by search that only the optimal tokens are locally optimal."""
    return Check(
        "A",
        "Definition 2, for all selections",
        "No other choice of tokens can hold training back: only the best tokens are stable.",
        outcome(facts.alone, facts.complete & facts.distinct | facts.several),
        {
            "locally optimal selections found": facts.local_count,
            "searched": facts.of_searches("searched"),
            "selections that exist": facts.of_searches("total"),
        },
        _ties(facts),
    )


def cone(delta: Tensor, value: Tensor, A: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Compute μ and R of the cone of Theorem 7, eqs. (67) and (74), ``(*B,)`` each.

    Args:
        delta: half the distance of the nearest non-support token to the margin.
        value: ``‖W_mm‖``.
        A: the largest ``‖x_it z_iᵀ‖ ‖W_mm‖``.
        scores: T times the range of the scores over their least gap to support tokens.
    """
    mu = 0.125 * (delta.clamp_max(0.5) / A) ** 2
    far = torch.maximum(torch.full_like(delta, 2.0), 1.0 / delta)
    return mu, far * value * (64.0 * A * scores).log()


def theorem_7(facts: Facts) -> Check:
    """Check Theorem 7: local convergence, with the cone of eqs. (67) and (74)."""
    delta, value = slack(facts), Frobenius().value(facts.solution.W)
    scores = facts.data.T * facts.score_range / support_gap(facts)
    mu, R = cone(delta, value, largest_pair(facts) * value, scores)
    return Check(
        "A",
        "Theorem 7",
        "Gradient descent that begins near the predicted direction stays with it.",
        regular(facts) if facts.on_W else Outcome.UNDECIDABLE,
        {
            "μ (the start has at least the correlation 1 − μ)": mu,
            "R (beyond this norm is no stationary point)": R,
        },
        "" if facts.on_W else "about gradient descent on W",
    )


def assumption_d(facts: Facts) -> Check:
    """Check by search that there is always an optimal support index."""
    missing = facts.of_searches("without_optimal_support")
    return Check(
        "A",
        "Assumption D",
        "Every other selection has a best token among its support tokens, which pulls it away.",
        outcome(facts.unique & (missing == 0), _searched(facts, missing > 0)),
        {"exceptions": missing, "searched": facts.of_searches("searched")},
        _ties(facts),
    )


def _searched(facts: Facts, exceptions: Tensor) -> Tensor:
    """Whether the search settles a statement about all selections, bool ``(*B,)``.

    Equal tokens, which the search counts once, are no selections of the papers.
    """
    return (facts.complete & facts.distinct) | (exceptions & ~facts.copied)


def _ties(facts: Facts) -> str:
    return "" if bool(facts.distinct.all()) else "where scores are tied, mixtures can be stable too"


def strong_d(facts: Facts) -> Check:
    """Check that all optimal indices are support indices."""
    missing = facts.of_searches("without_all_optimal_support")
    return Check(
        "A",
        "Assumption D, stronger form",
        "In every other selection, each sequence has its best token selected or as support.",
        outcome(facts.unique & (missing == 0), _searched(facts, missing > 0)),
        {"exceptions": missing},
    )


def conjecture(facts: Facts) -> Check:
    """Check the conjecture of Section 5.2: B.1 and D imply global convergence of descent on W.

    It rests on Theorem 3, and so on Assumption A; both are about gradient descent on W alone.
    """
    b1, d = assumption_b1(facts), assumption_d(facts)
    both = holds(b1) & holds(d)
    refuted = fails(b1.outcome) | fails(d.outcome)
    return Check(
        "A",
        "Conjecture of Section 5.2",
        "If B.1 and D hold, gradient descent selects the best token of every sequence.",
        under_a(facts, both, both | refuted) if facts.on_W else Outcome.UNDECIDABLE,
        {},
        "a conjecture, stated for gradient descent on W; it rests on Assumption A",
    )


def theorem_8(facts: Facts) -> Check:
    """Check that every selection is feasible."""
    found, searched = facts.of_searches("feasible"), facts.of_searches("searched")
    return Check(
        "A",
        "Theorem 8",
        "Attention could select any choice of tokens at all.",
        theorem_1(facts).outcome,
        {"feasible": found, "searched": searched},
        "for almost all data, by the width of tokens; the numbers are about these data",
    )


def lemma_5(facts: Facts) -> Check:
    """Check that exactly the locally optimal directions are in the cone of Definition 3."""
    wrong = facts.of_searches("outside_cone")
    return Check(
        "A",
        "Lemma 5",
        "Around a locally optimal selection, tokens of low score shield it from better ones.",
        outcome(wrong == 0, facts.complete | (wrong > 0)),
        {"exceptions": wrong, "searched": facts.of_searches("searched")},
        "exceptions have a sequence without support tokens (docs/errata.md)",
    )


def assumption_e(facts: Facts) -> Check:
    """Check that a linear head preserves the top score, with c of eq. (87)."""
    return Check(
        "A",
        "Assumption E",
        "No mixture of worse tokens scores as high as the selected one.",
        outcome(torch.ones_like(facts.unique)),
        {"c, distance to the next lower score": _lower_gap(facts)},
        "every linear head has it",
    )


def _lower_gap(facts: Facts) -> Tensor:
    """Compute c of eq. (87): the least distance of a best score to the next, ``(*B,)``."""
    lower = facts.gamma.where(low_tokens(facts.data, facts.best), -torch.inf).amax(-1)
    gaps = facts.gamma.amax(-1) - lower
    return gaps.nan_to_num(nan=torch.inf, posinf=torch.inf).amin(facts.inner(gaps))


def theorem_9(facts: Facts) -> Check:
    """Check Theorem 9: local regularisation paths."""
    return Check(
        "A",
        "Theorem 9",
        "Within its cone, the best weights of growing size turn to a locally optimal direction.",
        regular(facts),
        {"locally optimal selections found": facts.local_count},
        "about regularisation paths, not about descent",
    )


def lemma_6(facts: Facts) -> Check:
    """Report Lemma 6 as undecidable here: a linear head selects single tokens."""
    return Check(
        "A",
        "Lemma 6",
        "A head that punishes long outputs makes attention mix several tokens.",
        Outcome.UNDECIDABLE,
        {"tokens per sequence with this head": number(1)},
        "about the head vᵀx − λ‖x‖²; a linear head selects single tokens",
    )
