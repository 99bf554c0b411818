"""Certificates and Frobenius solutions in rational numbers."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.margin.exact.elimination import solve_integers
from attnmargin.margin.exact.frobenius import solve_exactly
from attnmargin.margin.exact.rows import exact_rows
from tests.problems import tokens_and_sets

WHOLE = st.integers(-9, 9)


@given(st.lists(st.lists(WHOLE, min_size=3, max_size=3), min_size=3, max_size=3),
       st.lists(WHOLE, min_size=3, max_size=3))  # fmt: skip
def test_elimination_solves_or_says_singular(A: list[list[int]], b: list[int]) -> None:
    x = solve_integers(A, b)
    if x is None:
        assert abs(float(torch.linalg.det(torch.tensor(A, dtype=torch.float64)))) < 1e-6
    else:
        assert [sum(a * y for a, y in zip(row, x, strict=True)) for row in A] == b


def test_rows_are_the_floats_they_were() -> None:
    problem = am.margin_problem([[0.1, 1e-9]], [[3.0, -0.7]], bound=[0.3])
    rows = exact_rows(problem)
    factor = Fraction(2) ** rows.power[0]
    assert [Fraction(x) for x in rows.left[0]] != []
    products = [Fraction(x * y) / factor for x in rows.left[0] for y in rows.right[0]]
    assert products == [Fraction(x) * Fraction(y) for x in (0.1, 1e-9) for y in (3.0, -0.7)]
    assert Fraction(rows.bound[0]) / factor / rows.scale == Fraction(0.3)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_exact_and_floating_solutions_agree(seed: int) -> None:
    problem = tokens_and_sets(seed, trials=1)[0]
    solution, rows = am.solve(problem), exact_rows(problem)
    answer = solve_exactly(rows, [])
    assert answer.feasible == (solution.status == am.Status.OPTIMAL)
    if answer.feasible:
        tight = [rows.place[m] for m in answer.tight if not rows.equality[m]]
        assert tight == solution.support.nonzero().flatten().tolist()


def test_contradictions_are_exact() -> None:
    rows = exact_rows(am.margin_problem([[0.1, 0.7], [-0.2, -1.4], [5.0, 1.0]], [[1.0]]))
    answer = solve_exactly(rows, [2])
    assert not answer.feasible
    total = [sum(x * rows.left[m][c] for m, x in answer.dual.items()) for c in range(2)]
    assert total == [0, 0]
    assert all(x > 0 for x in answer.dual.values())


@pytest.mark.parametrize("norm", ["fro", "nuc", 1.75, 3.0])
def test_exact_certificates_agree(norm: str | float) -> None:
    data = am.random_data(3, 4, 3, trials=4, name="exact")
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    solution = am.solve(problem, norm)
    exact = am.certify(problem, norm, solution.W, solution.dual, exact=True)
    plain = solution.certificate
    assert exact.status.tolist() == plain.status.tolist()
    for name in ("gap", "lower", "upper"):
        a, b = getattr(exact, name), getattr(plain, name)
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-14)


def test_exact_certificates_tell_near_contradictions_from_real_ones() -> None:
    nothing = torch.full((2, 1), torch.nan)
    near = am.margin_problem([[1.0, 0.1], [-3.0, -0.3]], [[1.0]])  # 3 · 0.1 is not 0.3
    real = am.margin_problem([[1.0, 0.5], [-3.0, -1.5]], [[1.0]])
    dual = [0.75, 0.25]
    assert am.certify(near, "fro", nothing, dual).status == am.Status.INFEASIBLE
    assert am.certify(near, "fro", nothing, dual, exact=True).status == am.Status.INACCURATE
    assert am.certify(real, "fro", nothing, dual, exact=True).status == am.Status.INFEASIBLE
    assert bool(am.solve(real).infeasible)


def test_violations_beyond_all_floats_are_infinite() -> None:
    problem = am.margin_problem([[1e90]], [[1e90]], [1e-90])
    found = am.certify(problem, "fro", [[-1e90]], [1.0], exact=True)
    assert (float(found.primal), float(found.gap)) == (float("inf"), float("inf"))
    assert found.status == am.Status.INACCURATE
