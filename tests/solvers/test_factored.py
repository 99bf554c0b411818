"""The factored Gram matrix of rows that hold, against a dense solve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnmargin.base.kernels import Floats
from attnmargin.solvers.blocks.factored import Factored
from attnmargin.solvers.blocks.rows import Part

_ROWS, _QUERIES = 40, 8


def _part(rows: list[int], seed: int = 0, d: int = 9, e: int = 7) -> Part:
    """Take rows of a random problem, ascending, in which five rows share each query."""
    generator = np.random.default_rng(seed)
    left, query = generator.normal(size=(_ROWS, d)), generator.normal(size=(_QUERIES, e))
    chosen = np.array(sorted(rows))
    return Part(left, chosen, chosen // (_ROWS // _QUERIES), query)


def _gram(part: Part) -> Floats:
    A = np.einsum("md,me->mde", part.left[part.rows], part.query[part.place])
    flat: Floats = A.reshape(len(A), -1)
    return flat @ flat.T


def _sets() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, _ROWS - 1), min_size=1, unique=True)


@settings(deadline=None)
@given(old=_sets(), new=_sets(), seed=st.integers(0, 10**6))
def test_other_rows_are_solved_with_the_factor_of_the_old_ones(
    old: list[int], new: list[int], seed: int
) -> None:
    part = _part(new, seed)
    right = np.random.default_rng(seed + 1).normal(size=len(new))
    x = Factored(_part(old, seed)).solved(part, right)
    assert x is not None
    gram = _gram(part)
    np.testing.assert_allclose(gram @ x, right, atol=1e-9)
    accuracy = 1e-12 * np.linalg.cond(gram)
    np.testing.assert_allclose(x, np.linalg.solve(gram, right), rtol=accuracy, atol=accuracy)


def test_a_factor_fits_while_few_rows_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnmargin.solvers.blocks.factored._DIFFER", 3)
    factored = Factored(_part([1, 2, 3]))
    assert factored.fits(_part([1, 2, 3]).rows)
    assert factored.fits(_part([1, 5, 6]).rows) is False  # two gone, two new
    assert factored.fits(_part([1, 2, 3, 4, 5, 6]).rows)


def test_rows_that_depend_on_each_other_are_refused() -> None:
    """Nine directions of tokens on one query: a tenth row depends on them."""
    one = Part(_part([0]).left, np.arange(12), np.zeros(12, int), _part([0]).query[:1])
    right = np.random.default_rng(0).normal(size=12)
    assert Factored(one).solved(one, right) is None


def test_a_singular_border_is_refused() -> None:
    """Rows that get a twin: the factor is good, the new Gram matrix is not."""
    part = _part([0, 1, 2, 3])
    part.left[3] = part.left[0]
    old = Part(part.left, part.rows[:3], part.place[:3], part.query)
    right = np.array([1.0, 0.0, 0.0, -1.0])
    assert Factored(old).solved(part, right) is None
