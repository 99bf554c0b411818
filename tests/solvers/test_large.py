"""Large Frobenius problems by torch alone, as on a GPU, against the compiled methods."""

from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.margin.norms import Frobenius
from attnmargin.solvers.interior.quadratic import solve_quadratic
from attnmargin.solvers.large import solve_together
from attnmargin.solvers.outcome import SOLVED, STALLED
from attnmargin.solvers.watch import Watch
from tests.problems import planted_optimum

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
entry = import_module("attnmargin.solvers.entry")


def _together(problem: am.MarginProblem) -> am.Solution:
    return entry._deliver(problem, Frobenius(), *solve_together(problem.to(DEVICE), Watch()))


def _agrees(problem: am.MarginProblem) -> None:
    found, exact = _together(problem), am.solve(problem, method="active-set")
    assert bool(found.optimal.all())
    torch.testing.assert_close(found.W.cpu(), exact.W, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 7), st.integers(2, 6))
@settings(max_examples=25, deadline=None)
def test_tokens_with_masks_and_several_queries(seed: int, n: int, T: int, d: int) -> None:
    """Every query selects the token that some W prefers; hidden tokens do not count."""
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(n, T, d)), rng.normal(size=(n, 2, d))
    mask = rng.random((n, T)) < 0.8
    mask[:, 0] = True
    scores = np.where(
        mask[:, None], np.einsum("ntd,de,nke->nkt", X, rng.normal(size=(d, d)), z), -np.inf
    )
    _agrees(am.token_problem(X, z, scores.argmax(-1), mask))


@pytest.mark.parametrize("seed", range(5))
def test_planted_answers_with_equalities(seed: int) -> None:
    planted = planted_optimum(60, 6, 5, seed, equalities=7)
    found = _together(planted.problem)
    assert bool(found.optimal)
    torch.testing.assert_close(found.W.cpu(), planted.W, rtol=1e-9, atol=1e-9)


def test_a_batch_is_its_loop() -> None:
    problem = am.margin_problem(
        torch.randn(
            3, 30, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        ).abs(),
        torch.ones(1, 1, dtype=torch.float64),
    )
    together = _together(problem)
    alone = torch.stack([_together(problem[b]).W for b in range(3)])
    assert torch.equal(together.W, alone)


def test_repeated_rows() -> None:
    planted = planted_optimum(40, 5, 4, seed=1)
    rows = torch.arange(80) % 40
    P = planted.problem
    _agrees(am.margin_problem(P.left[rows], P.right[rows], P.bound[rows]))


def test_a_single_row_has_its_closed_form() -> None:
    """The shortest W with ⟨a, W⟩ ≥ 3 is 3 a / ‖a‖²."""
    left, right = torch.tensor([[1.0, 2.0]]).double(), torch.tensor([[2.0]]).double()
    _, W, outcome, _ = solve_quadratic(am.margin_problem(left, right, 3.0), None, 1e-12)
    torch.testing.assert_close(W, 3.0 * left.mT * 2.0 / 20.0)
    assert int(outcome) == SOLVED


def test_a_contradiction_is_left_to_others() -> None:
    """What cannot be solved is not called solved; the certificate does not call it optimal."""
    problem = am.margin_problem([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [[1.0]] * 3)
    outcome = solve_together(problem, Watch())[2]
    assert int(outcome) == STALLED
    assert not bool(_together(problem).optimal)


def test_elsewhere_than_on_the_cpu_torch_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing compiled runs, large problems in every norm are solved all the same."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(60, 9, 5)), rng.normal(size=(5, 5))
    problem = am.token_problem(X, X[:, 0], np.einsum("ntd,de,ne->nt", X, W, X[:, 0]).argmax(-1))
    norms: tuple[str | float, ...] = ("fro", "nuc", 3.0)
    expected = [am.solve(problem, norm).value for norm in norms]
    monkeypatch.setattr(entry, "_LARGE_ELSEWHERE", (200, 200))
    for module in ("entry", "large", "interior.walk"):
        monkeypatch.setattr(f"attnmargin.solvers.{module}.runs_compiled", lambda device: False)
    for norm, value in zip(norms, expected, strict=True):
        found = am.solve(problem, norm)
        assert bool(found.optimal)
        torch.testing.assert_close(found.value, value, rtol=2e-9, atol=0.0)
