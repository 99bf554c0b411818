"""Paper A, Sections 5 and 6: local directions, the conjecture, nonlinear heads, as checks."""

from typing import Any

import torch
from torch import Tensor

from attnmargin.margin.norms import Frobenius, Lp
from attnmargin.theory.check import Check, Outcome, fails, holds, number, outcome
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import assumption_b1, theorem_1, thin, under_a


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


def locally(facts: Facts, rest: Tensor | None = None, known: Tensor | None = None) -> Any:
    """Decide what local theorems assume: Assumption A, and a locally optimal selection.

    ``rest``, bool ``(*B,)``, is assumed as well, and decided where ``known``.
    """
    local = facts.chosen.found.local
    rest = torch.ones_like(local) if rest is None else rest
    known = torch.ones_like(local) if known is None else known
    refuted = facts.none_local | (~rest & known) | ~facts.choice
    return under_a(facts, local & rest & facts.choice, refuted)


def in_no_cone(facts: Facts, away: Tensor) -> Tensor:
    """Decide from its divergence that W(0) is in no cone of any μ < 1, bool ``(*B,)``."""
    return torch.isinf(away) | ((away >= 1.0) & facts.surveyed)


def started(facts: Facts, inside: Tensor, direction: Tensor) -> dict[str, Tensor]:
    """Name the numbers of a start: 1 where it is in the cone, its divergence and its norm."""
    W = facts.start.W
    if W is None:
        return {}
    size = Lp(facts.p).value(W)
    return {
        "W(0) is in the cone (1: yes)": inside.double(),
        "divergence of W(0) from the direction": direction,
        "norm of W(0)": size,
    }


def theorem_7(facts: Facts) -> Check:
    """Check Theorem 7: local convergence, with the cone of eqs. (67), (74), (80) and ζ(μ).

    From W(0) it holds if W(0) is in the cone of the proof. It fails if W(0) is in no cone of any
    μ < 1. In between it is not decided: the theorem says that some μ and R exist.
    """
    name, meaning = "Theorem 7", "Gradient descent that begins near the direction stays with it."
    if not facts.on_W:
        return Check("A", name, meaning, Outcome.UNDECIDABLE, {}, "about gradient descent on W")
    own = facts.chosen
    numbers = {
        "μ (the start has at least the correlation 1 − μ)": own.mu,
        "R (beyond this norm is no stationary point)": own.no_rest,
        "R of the cone": own.radius_a,
        "ζ(μ), steps that stay in the cone": _longest_step(facts),
    }
    if facts.selection is None:
        numbers["locally optimal selections found"] = facts.local_count
    W = facts.start.W
    if W is None:
        return Check("A", name, meaning, locally(facts), numbers, _LOCAL)
    away = own.divergence(W)
    inside = (away <= own.mu) & (Frobenius().value(W) >= own.radius_a)
    answer = locally(facts, inside, in_no_cone(facts, away))
    numbers |= started(facts, inside, away)
    return Check("A", name, meaning, answer, numbers, _LOCAL)


# Weights beyond this norm are not computed with.
_LARGE = 1e80
_LOCAL = "about the selection that is asked for, or a locally optimal one that the search found"


def _longest_step(facts: Facts) -> Tensor:
    """Compute ζ(μ) at W(0), or where the cone begins along W_mm; NaN where no norm is known."""
    own = facts.chosen
    if facts.start.W is not None:
        return own.step(facts.start.W)
    size = own.radius_a / own.value
    usable = size < _LARGE
    W = own.solution.W * size[..., None, None]
    return own.step(W.where(usable[..., None, None], 0.0)).where(usable, torch.nan)


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
    both = holds(b1) & holds(d) & facts.choice
    refuted = fails(b1.outcome) | fails(d.outcome) | ~facts.choice
    return Check(
        "A",
        "Conjecture of Section 5.2",
        "If B.1 and D hold, gradient descent selects the best token of every sequence.",
        under_a(facts, both, both | refuted) if facts.on_W else Outcome.UNDECIDABLE,
        {},
        "a conjecture, stated for gradient descent on W; it rests on Assumption A",
    )


def theorem_8(facts: Facts) -> Check:
    """Check that every selection is feasible, which asks for factors K and Q of full width."""
    found, searched = facts.of_searches("feasible"), facts.of_searches("searched")
    return Check(
        "A",
        "Theorem 8",
        "Attention could select any choice of tokens at all.",
        theorem_1(facts).outcome if not thin(facts) else outcome(torch.zeros_like(facts.unique)),
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
