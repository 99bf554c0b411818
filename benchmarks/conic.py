"""Nuclear and ℓp norms: ours against Clarabel, moreau and the papers' cvxpy, in one run.

    python -m benchmarks.conic [--batch 200] [--repeats 15]

The rivals stop at their usual tolerance of 1e-8.
"""

from collections.abc import Callable

from benchmarks.conic_rivals import (
    clarabel_in_a_loop,
    dual_lmi,
    moreau_batched,
    ours,
    primal_sdp,
)
from benchmarks.harness import Contest, run
from benchmarks.rivals import Answer, cvxpy_as_in_the_papers

NUCLEAR = [(5, 5, 5), (6, 8, 10), (5, 5, 20)]
POWERS = [1.75, 3.0]
FEW = {
    "Clarabel in a loop, dual LMI": 40,
    "Clarabel in a loop, primal SDP": 5,
    "moreau batched, primal SDP": 20,
    "cvxpy as in the papers": 5,
}


def nuclear_methods() -> dict[str, Callable[..., Answer]]:
    return {
        "attnmargin": ours("nuc"),
        "moreau batched, dual LMI": moreau_batched(dual_lmi),
        "Clarabel in a loop, dual LMI": clarabel_in_a_loop(dual_lmi),
        "moreau batched, primal SDP": moreau_batched(primal_sdp),
        "Clarabel in a loop, primal SDP": clarabel_in_a_loop(primal_sdp),
    }


def power_methods(p: float) -> dict[str, Callable[..., Answer]]:
    return {"attnmargin": ours(p), "cvxpy as in the papers": cvxpy_as_in_the_papers(p)}


if __name__ == "__main__":
    contests = [Contest("nuc", shape, nuclear_methods(), FEW) for shape in NUCLEAR]
    contests += [Contest(p, (6, 8, 10), power_methods(p), FEW) for p in POWERS]
    run(contests, "conic", __doc__)
