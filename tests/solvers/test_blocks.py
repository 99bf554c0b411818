"""Block ascent for large Frobenius problems, against the active-set method and closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.solvers.blocks import method, rows
from attnmargin.solvers.blocks.augmented import augmented
from attnmargin.solvers.blocks.contradiction import contradiction
from attnmargin.solvers.blocks.rows import scaled
from attnmargin.solvers.blocks.search import Search
from attnmargin.solvers.frobenius.method import active_set_work, flatten
from tests.large import KINDS, contradictory, drawn, realisable
from tests.problems import planted_optimum


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_it_agrees_with_the_active_set_method(kind: str, seed: int) -> None:
    problem = drawn(kind, seed)
    direct = am.solve(problem, method="active-set")
    blocks = am.solve(problem, method="blocks")
    assert blocks.status == direct.status
    if direct.status == "optimal":
        assert float(blocks.value) == pytest.approx(float(direct.value), rel=1e-9)


@pytest.mark.parametrize("shape", [(60, 9, 16), (40, 12, 12), (100, 21, 20), (30, 11, 64)])
def test_ascent_alone_reaches_the_solution(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the active-set method, which would solve such problems at once."""
    problem = realisable(*shape)
    direct = am.solve(problem, method="active-set")
    monkeypatch.setattr(method, "_QUICK", 0.0)
    monkeypatch.setattr(method, "_EXACT", 0)
    blocks = am.solve(problem, method="blocks")
    assert float(blocks.certificate.gap) < 1e-9
    assert float(blocks.value) == pytest.approx(float(direct.value), rel=1e-9)
    assert float(blocks.certificate.primal) < 1e-12


@pytest.mark.parametrize("equalities", [0, 5])
def test_a_leap_changes_the_way_and_not_the_end(
    equalities: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages of the augmented Lagrangian right after the first round."""
    problem = planted_optimum(80, 6, 5, seed=2, equalities=equalities).problem
    direct, leap = am.solve(problem, method="active-set"), Search.leap
    leaps: list[None] = []
    monkeypatch.setattr(method, "_LEAP", 1)
    monkeypatch.setattr(method, "_quick", lambda search: False)
    monkeypatch.setattr(Search, "crowded", True)
    monkeypatch.setattr(Search, "leap", lambda search: leaps.append(leap(search)))
    monkeypatch.setattr(method, "_NEAR", 0.0)
    blocks = am.solve(problem, method="blocks")
    assert len(leaps) == 1
    assert blocks.status == "optimal"
    assert float(blocks.value) == pytest.approx(float(direct.value), rel=1e-9)


def test_a_stage_minimises_the_augmented_lagrangian() -> None:
    """Its gradient ``W − Aᵀλ`` nearly vanishes, with ``λ = σ (b − A W + λ₀/σ)₊``."""
    own = scaled(realisable(40, 6, 8))
    dual = np.random.default_rng(0).uniform(0.0, 1.0, len(own.there))
    start = np.zeros((8, 8))
    stage = augmented(own, own.there, dual, start, weight=5.0)
    part = own.part(own.there)
    rest = 5.0 * (own.P.bound - part.apply(stage.W)) + dual
    np.testing.assert_allclose(stage.dual, np.maximum(rest, 0.0), rtol=1e-9, atol=1e-9)
    move = np.linalg.norm(stage.dual - dual)
    assert np.linalg.norm(stage.W - part.adjoint(stage.dual)) <= 0.3 * move / np.sqrt(5.0)


def test_closed_forms() -> None:
    one = am.solve(am.margin_problem([[3.0, 4.0]], [[0.0, 2.0]], 10.0), method="blocks")
    assert torch.allclose(one.W, torch.tensor([[0.0, 0.6], [0.0, 0.8]], dtype=one.W.dtype))
    none = am.solve(am.margin_problem([[1.0], [1.0]], [[1.0]], [-1.0, 0.0]), method="blocks")
    assert (none.status, float(none.value)) == ("optimal", 0.0)
    zero = am.solve(am.margin_problem([[0.0], [1.0]], [[1.0]], [2.0, 1.0]), method="blocks")
    assert zero.status == "infeasible"
    assert zero.dual.tolist() == [0.5, 0.0]


def test_planted_multipliers() -> None:
    """W = Σ λ_m left_m queryᵀ with λ > 0 on tight rows and slack elsewhere is the solution."""
    generator = torch.Generator().manual_seed(3)
    left = torch.randn(400, 30, generator=generator, dtype=torch.float64)
    query = torch.randn(40, 30, generator=generator, dtype=torch.float64)
    dual = torch.rand(400, generator=generator, dtype=torch.float64)
    dual[torch.rand(400, generator=generator) < 0.5] = 0.0
    plain = am.margin_problem(left, query, 0.0)
    W = plain.adjoint(dual)
    slack = (dual == 0).to(left) * torch.rand(400, generator=generator, dtype=torch.float64)
    solution = am.solve(am.margin_problem(left, query, plain.apply(W) - slack), method="blocks")
    assert torch.allclose(solution.W, W, atol=1e-11 * float(W.abs().max()))
    assert solution.status == "optimal"


def test_large_problems_are_solved_by_blocks() -> None:
    problem = realisable(100, 20, 64)
    assert active_set_work(problem.M, problem.shape) > 5e7
    solution, blocks = am.solve(problem), am.solve(problem, method="blocks")
    assert torch.equal(solution.W, blocks.W)  # same method, same bits
    assert solution.status == "optimal"
    assert float(solution.certificate.gap) < 1e-12


def test_contradictions_are_proved() -> None:
    """5,700 rows over 400 weights: the multipliers diverge, and become the proof."""
    problem = contradictory(300, 20, 20)
    solution = am.solve(problem, method="blocks")
    assert solution.status == "infeasible"
    proof = solution.dual
    assert float(proof.min()) >= 0.0
    assert float(proof.sum()) == pytest.approx(1.0)
    assert float(problem.adjoint(proof).abs().max()) < 1e-15
    with pytest.raises(am.InfeasibleError, match="no W satisfies these"):
        solution.raise_for_status()


def test_no_contradiction_is_found_where_there_is_none() -> None:
    own = rows.scaled(flatten(realisable(20, 6, 8))[0])
    some = own.there[:50]
    assert contradiction(own, some, np.ones(len(some))) is None


def test_a_batch_equals_its_loop() -> None:
    problems = [realisable(20, 9, 6, seed) for seed in range(3)] + [contradictory(20, 9, 6)]
    left, query = (torch.stack([getattr(p, name) for p in problems]) for name in ("left", "query"))
    together = am.solve(am.margin_problem(left, query), method="blocks")
    for b, problem in enumerate(problems):
        alone = am.solve(problem, method="blocks")
        assert together.status[b] == alone.status
        assert torch.equal(together.dual[b], alone.dual)


def test_dtype_is_kept() -> None:
    problem = realisable(30, 9, 16).as_dtype(torch.float32)
    solution = am.solve(problem, method="blocks")
    assert (solution.W.dtype, solution.status) == (torch.float32, "optimal")


def test_lengths_of_any_size() -> None:
    problem = realisable(12, 6, 5)
    plain = am.solve(problem, method="blocks")
    for left, right in ((1e50, 1.0), (1e-60, 1e-50), (1.0, 1e60)):
        scaled = am.margin_problem(problem.left * left, problem.query * right)
        solution = am.solve(scaled, method="blocks")
        assert solution.status == "optimal"
        assert float(solution.value * left * right) == pytest.approx(float(plain.value))


def test_warm_starts_change_the_time_only() -> None:
    problem = realisable(60, 20, 32)
    cold = am.solve(problem, method="blocks")
    warm = am.solve(problem, method="blocks", warm_start=cold)
    assert float(warm.value) == pytest.approx(float(cold.value), rel=1e-12)
    assert int(warm.iterations) <= 1


@pytest.mark.parametrize("most", [0, 1, 2, 3, 5])
def test_ended_at_any_moment_it_returns_what_is_certified(most: int) -> None:
    problem, seen = realisable(100, 30, 32), []

    def look(count: int, support: int, gap: float) -> bool:
        seen.append((count, support, gap))
        return len(seen) > most

    solution = am.solve(problem, method="blocks", progress=look)
    check = am.certify(problem, "fro", solution.W, solution.dual)
    assert float(check.gap) == float(solution.certificate.gap)
    assert len(seen) <= most + 1
    assert seen[0][:2] == (problem.M, 0)
    if solution.status == "inaccurate" and bool(torch.isfinite(check.gap)):
        assert float(check.primal) == 0.0  # scaled up until every row holds
    best = am.solve(problem)
    assert float(check.lower) <= float(best.value) * (1 + 1e-12)
    assert float(check.upper) >= float(best.value) * (1 - 1e-12)


def test_time_limits() -> None:
    problem = realisable(60, 20, 32)
    assert am.solve(problem, method="blocks", time_limit=0).status == "inaccurate"
    assert am.solve(problem, method="blocks", time_limit=100.0).status == "optimal"
    with pytest.raises(InputError, match="time_limit: got -1; needs a number of seconds"):
        am.solve(problem, time_limit=-1)
    with pytest.raises(InputError, match="method: got 'blocks'; needs one of auto, interior"):
        am.solve(problem, "nuc", method="blocks")
