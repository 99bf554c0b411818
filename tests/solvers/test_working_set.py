"""Working sets in the nuclear and ℓp norms, against the methods that see all rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.papers.n.linear import random_classes
from attnmargin.solvers.interior.shared import shared_queries
from attnmargin.solvers.working_set import _worst
from tests.large import KINDS, contradictory, drawn, realisable

NORMS: list[str | float] = ["nuc", 3.0, 1.5]


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None, max_examples=25)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
def test_it_agrees_with_the_method_that_sees_all_rows(
    norm: str | float, kind: str, seed: int
) -> None:
    problem = drawn(kind, seed)
    direct = am.solve(problem, norm)
    found = am.solve(problem, norm, method="working-set")
    if "inaccurate" in (direct.status, found.status):
        assert not bool(found.optimal) or not bool(direct.infeasible)
        return
    assert found.status == direct.status
    if direct.status == "optimal":
        assert float(found.value) == pytest.approx(float(direct.value), rel=2e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_large_problems_take_few_rows(norm: str | float) -> None:
    problem, seen = realisable(60, 21, 12), []

    def look(rows: int, support: int, gap: float) -> None:
        seen.append((rows, support, gap))

    solution = am.solve(problem, norm, progress=look)
    assert solution.status == "optimal"
    assert float(solution.certificate.gap) < 1e-9
    assert seen[-1][0] == problem.M == 1200
    assert seen[-1][1] < problem.M / 2  # the last working set
    direct = am.solve(problem, norm, method="interior")
    assert float(solution.value) == pytest.approx(float(direct.value), rel=2e-9)


def test_a_second_implementation_agrees() -> None:
    problem = realisable(12, 40, 4)
    value = float(am.solve(problem, "nuc", method="working-set").value)
    other = am.solve(problem, "nuc", method="reference")
    assert value == pytest.approx(float(other.value), rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_contradictions_hold_in_every_norm(norm: str | float) -> None:
    solution = am.solve(contradictory(60, 21, 5), norm)
    assert solution.status == "infeasible"
    assert float(solution.dual @ solution.problem.bound) == pytest.approx(1.0)


def test_a_batch_equals_its_loop() -> None:
    problems = [realisable(20, 9, 6, seed) for seed in range(2)] + [contradictory(20, 9, 6)]
    left, query = (torch.stack([getattr(p, name) for p in problems]) for name in ("left", "query"))
    together = am.solve(am.margin_problem(left, query), 1.5, method="working-set")
    for b, problem in enumerate(problems):
        alone = am.solve(problem, 1.5, method="working-set")
        assert together.status[b] == alone.status
        assert torch.equal(together.dual[b], alone.dual)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("most", [0, 2, 5, 6])
def test_ended_at_any_moment_it_returns_what_is_certified(norm: str | float, most: int) -> None:
    problem, seen = realisable(60, 21, 12), []

    def look(*numbers: float) -> bool:
        seen.append(numbers)
        return len(seen) > most

    solution = am.solve(problem, norm, progress=look)
    check = am.certify(problem, norm, solution.W, solution.dual)
    assert float(check.gap) == float(solution.certificate.gap)
    best = float(am.solve(problem, norm).value)
    assert float(check.lower) <= best * (1 + 1e-9)
    assert float(check.upper) >= best * (1 - 1e-9)


def test_only_other_norms_have_it() -> None:
    with pytest.raises(InputError, match="method: got 'working-set'; needs one of auto, active"):
        am.solve(realisable(4, 3, 2), method="working-set")


def test_products_of_shared_queries() -> None:
    """Both forms of the Schur matrix, entry by entry."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    owner = torch.randint(7, (250,), generator=generator)
    query = draw(7, 4)
    z, left, c = query[owner], draw(250, 3), draw(250, 4)
    shared = shared_queries(z.unsqueeze(0))
    assert shared is not None
    weight = draw(3, 4).abs()
    rows = (left.unsqueeze(-1) * z.unsqueeze(-2)).flatten(-2)
    expected = (rows * weight.flatten()) @ rows.mT
    torch.testing.assert_close(shared.weighted_products(left, weight), expected)
    Y, basis = draw(4, 4), torch.linalg.qr(draw(4, 4)).Q
    Y, sums = Y @ Y.mT, (torch.rand(4, generator=generator).double() + 0.1)
    sums = sums.unsqueeze(-1) + sums
    turned = z @ basis
    both = c.unsqueeze(-1) * turned.unsqueeze(-2)
    both = both + both.mT
    T = (both @ Y + Y @ both) / sums
    expected = both.flatten(-2) @ T.flatten(-2).mT
    torch.testing.assert_close(shared.symmetric_products(c, turned, Y, sums, basis), expected)
    assert shared_queries(draw(1, 250, 4)) is None
    assert shared_queries(z[None, :50]) is None


@pytest.mark.parametrize("norm", NORMS)
def test_the_frobenius_solution_of_few_rows_is_not_sought_again(
    norm: str | float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the Frobenius solution of all rows is known")

    monkeypatch.setattr("attnmargin.solvers.interior.walk._frobenius", never)
    assert am.solve(realisable(60, 21, 12), norm).status == "optimal"


def test_only_the_worst_rows_join() -> None:
    missing = torch.tensor([0.5, -1.0, 0.1, 0.9, -0.01, 0.3])
    others = torch.tensor([True, True, True, False, True, True])
    assert _worst(missing, others, 2).tolist() == [True, False, False, False, False, True]
    assert _worst(missing, others, 99).tolist() == [True, False, True, False, True, True]
    assert not _worst(missing, torch.zeros(6, dtype=torch.bool), 3).any()


def test_few_rows_that_leave_much_open_do_not_bring_all_others() -> None:
    """Fifteen tight clusters: one of the shortest W for some rows violates thousands of others."""
    classes = random_classes(3, per=50)
    problem = am.class_problem(classes.x[2], classes.y[2], classes.count)
    held: list[int] = []

    def look(rows: int, support: int, gap: float) -> bool:
        held.append(support)
        return False

    solution = am.solve(problem, "spectral", progress=look)
    assert solution.status == "optimal"
    assert max(held) < problem.M // 5
