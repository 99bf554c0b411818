"""Solutions along a path of norms, each started from the one before."""

import math
from collections.abc import Sequence

from attnmargin.margin.norms import Frobenius, Lp, Norm, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve


def solve_path(problem: MarginProblem, norms: Sequence[str | float | Norm]) -> list[Solution]:
    """Solve in several norms, each started from the nearest norm already solved.

    The path goes outwards from p = 2, so that each step is short. The answers are the same as from
    :func:`attnmargin.solve`, in the order of ``norms``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 5, name="path")
        >>> problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        >>> path = am.solve_path(problem, [1.25, 1.5, "fro", 3])
        >>> [solution.norm.name for solution in path]
        ['1.25', '1.5', 'fro', '3.0']
    """
    wanted = [as_norm(norm) for norm in norms]
    found: dict[int, Solution] = {}
    for i in sorted(range(len(wanted)), key=lambda i: abs(_place(wanted[i]))):
        before = [other for other in found.values() if _on_the_way(other.norm, wanted[i])]
        found[i] = solve(problem, wanted[i], warm_start=before[-1] if before else None)
    return [found[i] for i in range(len(wanted))]


def _place(norm: Norm) -> float:
    """Return the position of a norm on the path: 0 is Frobenius, conjugate powers are opposite."""
    return math.log(norm.p - 1.0) if isinstance(norm, Lp) else 0.0


def _on_the_way(norm: Norm, goal: Norm) -> bool:
    """Check whether a norm is on the same side of Frobenius as the goal."""
    return isinstance(norm, Frobenius | Lp) and _place(norm) * _place(goal) >= 0.0
