"""The last digits for p > 2, against solutions in 160 digits."""

from typing import Any

import pytest
import torch
from mpmath import mp, mpf

import attnmargin as am
from attnmargin.margin.exact.rows import exact_rows
from attnmargin.solvers.exact import opinion
from attnmargin.solvers.exact.powers import solve_powers
from attnmargin.solvers.polish import _newton_doubled


def problems(trials: int) -> am.MarginProblem:
    data = am.random_data(6, 8, 10, trials=trials, name="digits for large powers")
    return am.token_problem(data.X, data.z, am.optimal_tokens(data))


def exact_weights(problem: am.MarginProblem, p: float, solution: am.Solution) -> torch.Tensor:
    """W of one problem, rounded from 160 digits."""
    rows = exact_rows(problem)
    held = solution.rows.tight.nonzero().flatten().tolist()
    found = solve_powers(rows, p, held, solution.W.flatten().tolist())
    assert found is not None
    with mp.workdps(50):
        W = [float(x / (mpf(rows.scale.numerator) / rows.scale.denominator)) for x in found.W]
    return torch.tensor(W, dtype=torch.float64).reshape(solution.W.shape)


@pytest.mark.parametrize("p", [4.0, 10.0])
def test_every_entry_is_within_its_bound_of_the_exact_one(p: float) -> None:
    problem = problems(3)
    solution = am.solve(problem, p, method="interior")
    W, _, off = _newton_doubled(solution, p)
    for b in range(3):
        expected = exact_weights(problem[b], p, solution[b])
        rounding = 1e-12 * expected.abs().max()
        assert bool(((W[b] - expected).abs() <= 4.0 * off[b] + rounding).all())
    assert float(off.max()) < 1e-3 * float(W.abs().max())


def test_random_problems_need_no_exact_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(solution: am.Solution, asked: torch.Tensor) -> Any:
        raise AssertionError(f"{int(asked.sum())} members are left open")

    monkeypatch.setattr(opinion, "with_exact_opinion", refuse)
    solution = am.solve(problems(200), 10.0)
    assert bool(solution.optimal.all())
    assert not bool(solution.doubtful.any())
    assert float(solution.certificate.gap.max()) < 1e-9
    assert float(solution.certificate.primal.max()) == 0.0


def test_rows_that_repeat_do_not_matter() -> None:
    problem = problems(8)
    left, query = problem.left, problem.right
    twice = am.margin_problem(torch.cat((left, left), 1), torch.cat((query, query), 1))
    found = [am.solve(rows, 10.0, method="interior") for rows in (problem, twice)]
    (one, _, near), (two, _, close) = (_newton_doubled(own, 10.0) for own in found)
    assert bool(((two - one).abs() <= 4.0 * (near + close) + 1e-12).all())
    support = am.solve(twice, 10.0).support
    assert bool((support[:, : problem.M] == support[:, problem.M :]).all())


def test_a_batch_is_its_loop() -> None:
    solution = am.solve(problems(5), 10.0, method="interior")
    together = _newton_doubled(solution, 10.0)
    for b in range(5):
        alone = _newton_doubled(solution[b : b + 1], 10.0)
        for one, all_ in zip(alone, together, strict=True):
            assert torch.equal(one[0], all_[b])


def test_scales_by_powers_of_two_change_no_digit() -> None:
    problem = problems(2)
    longer = am.margin_problem(problem.left * 2.0**40, problem.query * 2.0**-70)
    solution = am.solve(problem, 10.0, method="interior")
    moved = am.Solution(
        longer,
        solution.norm,
        solution.W * 2.0**30,
        solution.dual * 2.0**30,
        solution.certificate,
        solution.iterations,
    )
    one, other = _newton_doubled(solution, 10.0), _newton_doubled(moved, 10.0)
    torch.testing.assert_close(other[0], one[0] * 2.0**30, rtol=0.0, atol=1e-12 * 2.0**30)
