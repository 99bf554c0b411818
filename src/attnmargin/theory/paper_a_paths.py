"""Paper A, regularisation paths: Theorems 2, 9 and 10, Assumption E, and factors of width m."""

from typing import Any

import torch
from torch import Tensor

from attnmargin.margin.norms import Nuclear
from attnmargin.theory.check import Check, Outcome, number, outcome
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import fits, regular
from attnmargin.theory.paper_a_local import locally

_NOT_LP = "about the Frobenius and the nuclear norm"
_PATHS = "about regularisation paths, not about descent"
# Singular values of the dual matrix this near to its norm may belong to solutions.
_FACE = 1e-5


def theorem_2(facts: Facts) -> Check:
    """Check Theorem 2: regularisation paths converge to the SVM direction."""
    return Check(
        "A",
        "Theorem 2",
        "The best weights of a given size turn to the predicted direction as the size grows.",
        regular(facts) if facts.of_A else Outcome.UNDECIDABLE,
        {"smallest score gap": facts.gap},
        _PATHS if facts.of_A else _NOT_LP,
    )


def corollary_1(facts: Facts) -> Check:
    """Check Corollary 1: the same in any norm, for any number of queries."""
    return Check(
        "A",
        "Corollary 1",
        "In any norm, the best weights of growing size turn to the directions of its SVM.",
        regular(facts),
        {"smallest score gap": facts.gap, "margin": facts.solution.margin},
        _PATHS,
    )


def corollary_2(facts: Facts) -> Check:
    """Check Corollary 2: paths of W in the Frobenius norm, of (K, Q) in the nuclear norm."""
    return Check(
        "A",
        "Corollary 2",
        "Paths of W turn to the Frobenius direction, paths of K and Q to the nuclear ones.",
        regular(facts) if facts.of_A else Outcome.UNDECIDABLE,
        {"margin": facts.solution.margin},
        _PATHS if facts.of_A else _NOT_LP,
    )


def largest_rank(facts: Facts) -> Tensor:
    """Bound the rank of every nuclear solution, ``(*B,)``; NaN where none is known.

    With the multipliers λ of one, ``V = Σ λ_i a_i`` and ``‖V‖ = 1``, every solution W has ``⟨V, W⟩
    = ‖W‖⋆``: its rank is at most the number of singular values of V that are one, and at most n.
    """
    solution = facts.solution
    dual = solution.dual.where(solution.problem.mask, 0.0)
    V = solution.problem.adjoint(dual).where(solution.optimal[..., None, None], 0.0)
    singular = torch.linalg.svdvals(V.double())
    ones = (singular >= (1.0 - _FACE) * singular[..., :1]).sum(-1).clamp_max(facts.queries)
    return ones.double().where(solution.optimal, torch.nan)


def lemma_3(facts: Facts) -> Check:
    """Check Lemma 3: where no nuclear solution has a rank above m, factors of width m lose nothing.

    It fails where a solution has a larger rank; in between, where only the bound is above m, the
    first half applies: the least norm is the same, and the solutions are among the convex ones.
    """
    meaning = "Factors K and Q of this width have the same solutions as unlimited ones."
    if not isinstance(facts.norm, Nuclear):
        note = "about the parameterisation W = K Qᵀ"
        return Check("A", "Lemma 3", meaning, Outcome.UNDECIDABLE, {}, note)
    rank, most = facts.solution.rank, largest_rank(facts)
    known, m = facts.solution.optimal, facts.start.width
    fits, exceeds = known & (most <= m), known & (rank > m)
    return Check(
        "A",
        "Lemma 3",
        meaning,
        outcome(fits, fits | exceeds | facts.solution.infeasible),
        {
            "width m": number(m),
            "rank": rank.double().where(known, torch.nan),
            "no solution has a larger rank than": most,
        },
        "where only the rank is at most m, the least norm is still the same",
    )


def lemma_15(facts: Facts) -> Check:
    """Check Lemma 15: paths of (K, Q) are paths of W with ``‖W‖⋆ ≤ R`` and rank at most m.

    It needs nothing: ``‖K Qᵀ‖⋆ ≤ ½ (‖K‖²_F + ‖Q‖²_F)``, with equality for some factors of any W.
    """
    numbers = {}
    if facts.start.factors is not None:
        K, Q = facts.start.factors
        size = 0.5 * (K.square().sum((-2, -1)) + Q.square().sum((-2, -1)))
        numbers = {"½ (‖K‖² + ‖Q‖²) of the start": size, "‖K Qᵀ‖⋆": Nuclear().value(K @ Q.mT)}
    kq = facts.parameter == "KQ"
    every = torch.ones_like(facts.unique)
    return Check(
        "A",
        "Lemma 15",
        "The best K and Q of a given size give the best W of that nuclear norm, and conversely.",
        outcome(every) if kq else Outcome.UNDECIDABLE,
        numbers,
        _PATHS if kq else "about the parameterisation W = K Qᵀ",
    )


def assumption_e(facts: Facts) -> Check:
    """Check that a linear head preserves the top score, with c of eq. (87) for the selection."""
    return Check(
        "A",
        "Assumption E",
        "No mixture of worse tokens scores as high as the selected one.",
        outcome(torch.ones_like(facts.unique)),
        {"c, distance to the next lower score": facts.chosen.lower_gap},
        "every linear head has it, for every selection",
    )


def _local_path(facts: Facts) -> tuple[Any, dict[str, Tensor]]:
    """Decide Theorems 9 and 10: the selection is locally optimal, and W_mm is in its cone.

    With factors of width m < d, W_mm must have a rank of at most m.
    W_mm is not in the cone of a locally optimal selection where a sequence without support tokens
    has a higher token and no lower one above it (docs/errata.md, Lemma 5).
    """
    own = facts.chosen
    inside = own.barrier > 0
    numbers = {
        "locally optimal selections found": facts.local_count,
        "ε of the cone": own.barrier,
        "R₀ (the path begins at this norm)": own.R_0,
        "margin": own.solution.margin,
    }
    if facts.start.W is not None:
        numbers["W(0) is in the cone (1: yes)"] = own.in_local_cone(facts.start.W).double()
    known = own.found.local & facts.surveyed & ~inside
    return locally(facts, inside & fits(facts, own.solution), known), numbers


def theorem_9(facts: Facts) -> Check:
    """Check Theorem 9: local regularisation paths, with ε and R₀ of its proof.

    A path has no start, so that W(0) does not decide it.
    """
    meaning = "Within its cone, the best weights of growing size turn to a local direction."
    return Check("A", "Theorem 9", meaning, *_local_path(facts), _PATHS)


def theorem_10(facts: Facts) -> Check:
    """Check Theorem 10: the same in any norm, for any number of queries per sequence."""
    answer, numbers = _local_path(facts)
    meaning = "The same in any norm, with any number of queries per sequence."
    return Check("A", "Theorem 10", meaning, answer, numbers, _PATHS)
