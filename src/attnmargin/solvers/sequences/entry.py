"""The entry point for data that stay tokens and queries."""

from typing import Any

from attnmargin.base.checks import check_whole
from attnmargin.base.progress import Look
from attnmargin.margin.norms import Norm, as_norm
from attnmargin.margin.solution import Solution
from attnmargin.solvers.methods import check_method
from attnmargin.solvers.sequences.passes import Passes
from attnmargin.solvers.sequences.search import Search
from attnmargin.solvers.sequences.source import MOST_NUMBERS, as_source
from attnmargin.solvers.watch import Watch


def solve_sequences(
    sequences: Any,
    norm: str | float | Norm = "fro",
    *,
    time_limit: float | None = None,
    progress: Look | None = None,
    rows: int = 8192,
    numbers: int = MOST_NUMBERS,
) -> Solution:
    """Solve the attention SVM of one data set without building its rows.

        min ‖W‖   subject to   (x_iα − x_it)ᵀ W z_ik ≥ 1   (= 0 where t is selected too)

    The same problem as ``am.solve(am.token_problem(X, z, selection, mask), norm)``, without a
    batch. The memory it takes is that of the data, if they are in memory at all, and of some
    thousand rows: it solves these, looks for violated rows in a pass over the data, adds them, and
    solves again. The solution of some rows is the solution of all once it satisfies the others.

    Args:
        sequences: a tuple ``(X, z, selection)`` or ``(X, z, selection, mask)`` of arrays with the
            shapes of :func:`token_problem`, without a batch: numpy, torch, ``numpy.memmap`` or
            whatever yields arrays when sliced. Or a folder with ``X.npy``, ``z.npy``,
            ``selection.npy`` and perhaps ``mask.npy``, which are mapped, not read. Or a list, a
            torch dataset or anything that can be iterated again and again, with a tuple for every
            sequence: ``X_i (T_i, d)``, ``z_i (d,)`` or ``(K_i, d)``, its selection and perhaps
            mask.
        norm: as in :func:`solve`.
        time_limit: seconds after which the search ends with the best W so far, and a last pass
            certifies it; its status is then "inaccurate".
        progress: called with the number of rows, of those that hold and the gap so far; returns
            true to end like a time limit.
        rows: how many rows a pass adds at most; no more than these are built as a whole.
        numbers: how many entries of tokens, and values of rows, are in memory at a time.

    Returns:
        A :class:`Solution` in float64 on the CPU. Its ``problem`` has the rows that were built
        last, with the numbers of their sequences, queries and tokens. Its certificate covers all
        rows; ``outside`` says how many of them ``problem`` leaves out.

    Example:
        >>> import attnmargin as am
        >>> sequences = [([[1.0, 0.0], [0.0, 0.0]], [0.0, 2.0], 0), ([[0.0, 3.0]], [1.0, 1.0], 0)]
        >>> am.solve_sequences(sequences).W.tolist()
        [[0.0, 0.5], [0.0, 0.0]]
    """
    norm = as_norm(norm)
    check_method(norm, "auto", None)
    check_whole(rows=rows, numbers=numbers)
    watch = Watch(time_limit, progress)
    return Search(Passes(as_source(sequences), numbers), norm, watch, rows).solve()
