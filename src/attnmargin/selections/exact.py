"""Local optimality of a solved selection in rational numbers."""

from enum import StrEnum
from fractions import Fraction

from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.exact.certificate import exact_support
from attnmargin.margin.norms import Frobenius, Lp
from attnmargin.margin.solution import Solution


class Local(StrEnum):
    """Whether a selection is locally optimal (paper A, Definition 2)."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


def exact_locality(data: AttentionData, solution: Solution) -> list[Local]:
    """Decide whether solved selections are locally optimal, without rounding, one per member.

    Scores are compared as rational numbers. In the Frobenius norm, so are the rows: the SVM is
    solved again exactly. In other norms a row in doubt makes the answer "undecided".

    Args:
        data: the data, with the batch shape of the solution.
        solution: of their :func:`attnmargin.token_problem`.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(2, 3, 4, name="locality")
        >>> problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        >>> [str(x) for x in am.selections.exact_locality(data, am.solve(problem))]
        ['yes']
    """
    problem = solution.problem
    if data.batch_shape != problem.batch_shape or data.y is None or data.v is None:
        got = f"a batch {tuple(data.batch_shape)}"
        needs = f"labels, a head, and the batch {tuple(problem.batch_shape)} of the solution"
        raise InputError("data", got, needs)
    if bool((problem.names.other < 0).any()):
        raise InputError("solution", "one without pairs of tokens", "that of a token_problem")
    return [
        _local(data[index] if index else data, solution[index] if index else solution)
        for index in problem.members()
    ]


def _local(data: AttentionData, solution: Solution) -> Local:
    """Decide for one member."""
    problem, exact = solution.problem, exact_support(solution.problem, solution.dual)
    if not exact.feasible:
        return Local.NO
    rows = problem.mask.nonzero().flatten().tolist()
    if isinstance(solution.norm, Frobenius) or solution.norm == Lp(2.0):
        tight, doubtful = {rows[m] for m in exact.tight}, set[int]()
    else:
        tight = set(solution.support.nonzero().flatten().tolist())
        doubtful = set(solution.doubtful.nonzero().flatten().tolist())
    pulling = [m for m in rows if _pulls(data, solution, m)]
    if any(m in tight for m in pulling):
        return Local.NO
    return Local.UNDECIDED if any(m in doubtful for m in pulling) else Local.YES


def _pulls(data: AttentionData, solution: Solution, row: int) -> bool:
    """Check whether the token that must lose in this row has at least the score of the winner."""
    names = solution.problem.names
    shape = solution.problem.mask.shape
    parts = (names.sequence, names.position, names.chosen, names.other)
    i, position, chosen, other = (int(x.expand(shape)[row]) for x in parts)
    assert data.y is not None
    assert data.v is not None
    label = Fraction(float(data.y[i] if data.y.ndim == 1 else data.y[i, max(position, 0)]))
    pairs = zip(data.X[i, other].tolist(), data.X[i, chosen].tolist(), data.v.tolist(), strict=True)
    rise = sum((Fraction(a) - Fraction(b)) * Fraction(c) for a, b, c in pairs)
    return label * rise >= 0
