"""The certificate: a judge that trusts no solver."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.margin.norms import as_norm
from tests.problems import planted_contradiction, planted_in, planted_optimum

FLAT = ["spectral", "max", "sum", "rows", "columns"]
NORMS: list[str | float] = ["fro", "nuc", *FLAT, 1.1, 1.75, 3.0, 10.0]


def row_problem(norm: str | float) -> tuple[am.MarginProblem, torch.Tensor]:
    """One row ``⟨u zᵀ, W⟩ ≥ 1``: the optimum is the dual direction of u zᵀ, in closed form."""
    u = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    z = torch.tensor([1.0, 3.0], dtype=torch.float64)
    A = torch.outer(u, z)
    W = as_norm(norm).steepest(A)
    W = W / (W * A).sum()
    return am.margin_problem(u[None], z[None]), W


@pytest.mark.parametrize("norm", NORMS)
def test_closed_form_of_one_row(norm: str | float) -> None:
    problem, W = row_problem(norm)
    certificate = am.certify(problem, norm, W, [3.0])
    assert certificate.status == "optimal"
    assert float(certificate.gap) < 1e-14
    value = 1.0 / as_norm(norm).dual_value(problem.adjoint(torch.ones(1).double()))
    torch.testing.assert_close(certificate.lower, value)


@pytest.mark.parametrize("norm", NORMS)
def test_planted_pairs_are_certified_in_every_norm(norm: str | float) -> None:
    for seed in range(10):
        planted = planted_in(norm, 8, 4, 3, seed, equalities=seed % 3)
        assert am.certify(planted.problem, norm, planted.W, planted.dual).status == "optimal"
        for wrong in (planted.W * 1.001, planted.W * 0.999, planted.W + 1e-4):
            check = am.certify(planted.problem, norm, wrong, planted.dual)
            assert check.status == "inaccurate"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("entry", range(6))
def test_one_entry_off_is_refused(norm: str | float, entry: int) -> None:
    problem, W = row_problem(norm)
    for change in (1e-3, -1e-3):
        wrong = W.clone()
        wrong.view(-1)[entry] += change
        certificate = am.certify(problem, norm, wrong, [3.0])
        assert certificate.status == "inaccurate"


@given(
    M=st.integers(1, 12),
    equalities=st.integers(0, 3),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None)
def test_planted_pair_is_certified(M: int, equalities: int, seed: int, scale: float) -> None:
    planted = planted_optimum(M, 4, 3, seed, min(equalities, M), scale)
    certificate = am.certify(planted.problem, "fro", planted.W, planted.dual)
    assert certificate.status == "optimal"


@given(rows=st.integers(2, 5), others=st.integers(0, 5), seed=st.integers(0, 10_000))
@settings(deadline=None)
def test_planted_contradiction_is_certified_in_every_norm(
    rows: int, others: int, seed: int
) -> None:
    problem, dual = planted_contradiction(rows, others, 6, seed)
    nothing = torch.full((6, 2), torch.nan, dtype=torch.float64)
    for norm in NORMS:
        certificate = am.certify(problem, norm, nothing, dual)
        assert certificate.status == "infeasible"
        assert certificate.lower == certificate.gap == torch.inf


def test_a_false_proof_of_infeasibility_is_refused() -> None:
    problem, dual = planted_contradiction(3, 2, 4, 0)
    nothing = torch.full((4, 2), torch.nan, dtype=torch.float64)
    wrong = dual.clone()
    wrong[dual > 0] *= torch.tensor([1.0, 1.0, 1.001], dtype=torch.float64)
    assert am.certify(problem, "fro", nothing, wrong).status == "inaccurate"
    assert am.certify(problem, "fro", nothing, -dual).status == "inaccurate"
    assert am.certify(problem, "fro", nothing, torch.zeros_like(dual)).status == "inaccurate"


@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS))
@settings(deadline=None)
def test_the_lower_bound_is_below_every_feasible_norm(seed: int, norm: str | float) -> None:
    rng = np.random.default_rng(seed)
    problem = am.margin_problem(rng.standard_normal((5, 4)), rng.standard_normal((5, 3)))
    W = torch.from_numpy(rng.standard_normal((4, 3)))
    rows = problem.apply(W)
    bound = rows - torch.from_numpy(rng.exponential(size=5))  # so that W is feasible
    problem = am.margin_problem(problem.left, problem.right, bound)
    certificate = am.certify(problem, norm, W, rng.standard_normal(5))
    assert float(certificate.lower) <= float(as_norm(norm).value(W)) * (1 + 1e-12)


def test_too_long_a_solution_has_a_gap_and_too_short_a_one_a_violation() -> None:
    planted = planted_optimum(6, 4, 3, 1)
    problem = am.margin_problem(planted.problem.left, planted.problem.right)
    solution = am.solve(problem)
    longer = am.certify(problem, "fro", 2 * solution.W, solution.dual)
    assert float(longer.gap) == pytest.approx(0.5)
    assert float(longer.primal) == 0.0
    shorter = am.certify(problem, "fro", solution.W / 2, solution.dual)
    assert float(shorter.primal) > 0.01
    assert float(shorter.upper) == pytest.approx(float(solution.value))
    assert longer.status == shorter.status == "inaccurate"


def test_wrong_sign_of_a_multiplier_is_reported() -> None:
    problem, W = row_problem("fro")
    problem = am.margin_problem(problem.left.expand(2, 3), problem.right.expand(2, 2))
    certificate = am.certify(problem, "fro", W, [3.0, -1.0])
    assert float(certificate.dual) == pytest.approx(1 / 3)
    assert certificate.status == "inaccurate"


def test_wrong_equality_is_refused() -> None:
    planted = planted_optimum(6, 4, 3, 2, equalities=2)
    W = planted.W + 1e-6 * torch.outer(planted.problem.left[0], planted.problem.right[0])
    assert am.certify(planted.problem, "fro", W, planted.dual).status == "inaccurate"


def test_padding_does_not_count() -> None:
    problem, W = row_problem("fro")
    left = torch.cat([problem.left, torch.full((1, 3), 7.0, dtype=torch.float64)])
    masked = am.margin_problem(left, problem.right.expand(2, 2), mask=[True, False])
    assert am.certify(masked, "fro", W, [1.0, -5.0]).status == "optimal"


def test_no_rows_need_nothing() -> None:
    problem = am.margin_problem(np.ones((0, 2)), np.ones((0, 2)))
    certificate = am.certify(problem, "fro", np.zeros((2, 2)), np.zeros(0))
    assert certificate.status == "optimal"
    assert float(certificate.gap) == 0.0


@pytest.mark.parametrize("norm", NORMS)
def test_batch_equals_loop(norm: str | float) -> None:
    problem, W = row_problem(norm)
    many = am.margin_problem(problem.left.expand(3, 1, 3), problem.right.expand(3, 1, 2))
    weights = torch.stack([W, 2 * W, torch.full_like(W, torch.nan)])
    batch = am.certify(many, norm, weights, torch.ones(3, 1))
    assert batch.status.tolist() == ["optimal", "inaccurate", "inaccurate"]
    for i in range(3):
        one = am.certify(problem, norm, weights[i], torch.ones(1))
        for name in ("gap", "primal", "dual", "lower", "upper"):
            torch.testing.assert_close(
                getattr(batch, name)[i], getattr(one, name), atol=1e-15, rtol=0
            )


def test_float32_numbers_are_judged_in_float64() -> None:
    problem, W = row_problem("fro")
    single = problem.as_dtype(torch.float32)
    certificate = am.certify(single, "fro", W.float(), torch.ones(1))
    assert certificate.gap.dtype == torch.float64
    assert certificate.status == "optimal"
    assert 0.0 < float(certificate.gap) < 1e-6


def test_a_vector_needs_no_second_dimension() -> None:
    problem = am.margin_problem([[2.0, 0.0]], [[1.0]])
    assert am.certify(problem, 3.0, [0.5, 0.0], [1.0]).status == "optimal"


@pytest.mark.parametrize(
    ("W", "dual", "words"),
    [
        (np.ones((2, 3)), [1.0], "W: got shape (2, 3); needs (3, 2)"),
        (np.ones((3, 2)), [1.0, 2.0], "dual: got shape (2,); needs (1,)"),
        (np.full((3, 2), "a"), [1.0], "W: got <U1 entries"),
    ],
)
def test_wrong_shapes(W: object, dual: object, words: str) -> None:
    problem, _ = row_problem("fro")
    with pytest.raises(am.InputError) as caught:
        am.certify(problem, "fro", W, dual)
    assert words in str(caught.value)


def test_the_judge_imports_no_solver() -> None:
    seen, todo = set(), ["attnmargin.margin.certificate"]
    source = Path(am.__file__).parent
    while todo:
        module = todo.pop()
        seen.add(module)
        place = source.joinpath(*module.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        text = file.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("attnmargin"):
                assert "solvers" not in str(node.module)
                todo += [str(node.module)] if str(node.module) not in seen else []
    assert "attnmargin.margin.problem" in seen


def test_large_multipliers_on_rows_that_cancel_prove_nothing() -> None:
    problem = am.margin_problem([[1.0, 0], [-1.0, 0], [0, 1.0]], [[1.0]], [0.0, 0.0, 1.0])
    nothing = np.full((2, 1), np.nan)
    assert am.certify(problem, "fro", nothing, [1e12, 1e12, 1.0]).status == "inaccurate"
    assert am.solve(problem).status == "optimal"


@pytest.mark.parametrize("scale", [1e-170, 1e-20, 1.0, 1e20, 1e160])
def test_any_scale_of_the_multipliers_will_do(scale: float) -> None:
    problem = am.margin_problem([[1.0, 1.0]], [[1.0]])
    assert am.certify(problem, "fro", [[0.5], [0.5]], [scale]).status == "optimal"
    assert am.certify(problem, "fro", [[np.nan], [0.5]], [scale]).status == "inaccurate"
    assert am.certify(problem, "fro", [[0.0], [0.0]], [scale]).status == "inaccurate"


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_multipliers_that_are_no_numbers_prove_nothing(wrong: float) -> None:
    problem = am.margin_problem([[1.0]], [[1.0]])
    for W in ([[np.nan]], [[1.0]]):
        certificate = am.certify(problem, "fro", W, [wrong])
        assert certificate.status == "inaccurate"
        assert float(certificate.lower) == 0.0


def test_norms_whose_squares_vanish_or_overflow() -> None:
    small = am.margin_problem([[1e90, 1e90]], [[1e90]])
    too_long = [[5e-180], [5e-180]]
    assert am.certify(small, "fro", too_long, [0.0]).status == "inaccurate"
    large = am.margin_problem([[1e-170, 1e-170]], [[1.0]])
    assert am.certify(large, "fro", [[5e169], [5e169]], [1.0]).status == "optimal"


def test_a_long_w_may_not_miss_its_other_rows() -> None:
    """Rows outside the scaling are measured by their own bounds, however long W is."""
    tiny_and_equal = am.margin_problem(
        [[1e-13, 0.0], [0.0, 1.0]], [[1.0]], [1.0, 2.0], [False, True]
    )
    wrong = am.certify(tiny_and_equal, "fro", [[1e13], [0.0]], [1.0, 0.0])
    assert wrong.status == "inaccurate"
    assert float(wrong.primal) > 0.9
    tiny_and_negative = am.margin_problem([[1e-13, 0.0], [0.0, 1.0]], [[1.0]], [1.0, -1.0])
    assert am.certify(tiny_and_negative, "fro", [[1e13], [-1.9]], [1.0, 0.0]).status == "inaccurate"
    assert am.certify(tiny_and_negative, "fro", [[1e13], [0.0]], [1.0, 0.0]).status == "optimal"


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 6.0, 10.0])
def test_no_solution_is_outside_the_radius(p: float) -> None:
    """Closed form: W⋆ = (1, 1) in every norm; W is pushed off it, still feasible or short of it."""
    problem = am.margin_problem([[1.0, 0.0], [0.0, 1.0]], [[1.0]])
    norm = am.solve(problem, p).norm
    exact = torch.ones(2, 1, dtype=torch.float64)
    for push in (1e-2, 1e-5, 1e-9, -1e-6):
        W = exact + torch.tensor([[push], [0.0]], dtype=torch.float64)
        check = am.certify(problem, p, W, [1.0, 1.0])
        off = float(norm.value(W - exact) / norm.value(W))
        assert off <= float(check.radius)


def test_the_radius_of_a_long_w() -> None:
    problem = am.margin_problem([[1.0, 0.0], [0.0, 1.0]], [[1.0]])
    check = am.certify(problem, "fro", [[2.0], [1.0]], [1.0, 1.0])
    assert float(check.radius) == pytest.approx(math.sqrt((5.0 - 2.0) / 5.0))
    check = am.certify(problem, 4, [[2.0], [1.0]], [1.0, 1.0])
    assert float(check.radius) == pytest.approx(2.0 * ((17.0 - 2.0) / 17.0 / 2.0) ** 0.25)


def test_the_nuclear_norm_has_no_radius() -> None:
    problem = am.margin_problem([[1.0, 0.0]], [[1.0]])
    assert float(am.solve(problem, "nuc").certificate.radius) == math.inf
    assert am.solve(problem).certificate.radius.shape == ()
