"""The kernel for batches of small nuclear problems.

Without a GPU it runs in Triton's interpreter, where Triton is installed; elsewhere only what is
around it is tested.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.margin.norms import Nuclear
from attnmargin.solvers.interior.fused import (
    check_fused_nuclear,
    fits_nuclear,
    is_narrow,
    walk_fused,
)
from attnmargin.solvers.interior.walk import solve_from_frobenius
from tests.fused import DEVICE, needs_gpu, needs_triton, sets, tokens

entry = import_module("attnmargin.solvers.entry")

# The interpreter of Triton uses what NumPy has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def _bounds(trials: int) -> am.MarginProblem:
    problem = tokens(3, 4, 5, trials)
    rng = np.random.default_rng(0)
    return replace(problem, bound=torch.from_numpy(rng.uniform(-0.5, 3.0, problem.bound.shape)))


def _scaled(trials: int) -> am.MarginProblem:
    problem = tokens(3, 4, 5, trials)
    return replace(problem, left=problem.left * 1e-30, query=problem.query * 1e12)


def _repeated(trials: int) -> am.MarginProblem:
    """Every row twice, and two equal queries: singular systems, and a basis that is not full."""
    problem = tokens(3, 4, 5, trials)
    same = torch.arange(9) // 2 * 2
    return replace(problem, left=problem.left[:, same], query=problem.query[:, [0, 0, 1]])


def _walk_alone(problem: am.MarginProblem) -> am.Solution:
    """Certify what the kernel returns, with no other method behind it."""
    answer = solve_from_frobenius(problem, None, "lockstep", walk_fused, "")
    return entry._deliver(problem, Nuclear(), *answer)


@needs_triton
@pytest.mark.parametrize(
    "build",
    [
        lambda: tokens(4, 4, 6, 2),
        lambda: tokens(6, 4, 3, 2),
        lambda: tokens(5, 5, 20, 1),
        lambda: sets(3, 4, 4, 3),
        lambda: _bounds(2),
        lambda: _scaled(1),
        lambda: _repeated(2),
    ],
    ids=["12 rows", "more queries than columns", "wide", "sets", "bounds", "scaled", "repeated"],
)
def test_the_kernel_agrees_with_the_other_methods(build: Callable[[], am.MarginProblem]) -> None:
    problem = build()
    expected, found = am.solve(problem, "nuc"), _walk_alone(problem.to(DEVICE)).to("cpu")
    assert (found.status == expected.status).all()
    torch.testing.assert_close(found.value, expected.value, rtol=2e-9, atol=0.0, equal_nan=True)
    optimal = expected.optimal
    assert bool(optimal.any())
    size = torch.linalg.matrix_norm(problem.adjoint(found.dual), 2)
    torch.testing.assert_close(size[optimal], torch.ones_like(size[optimal]), rtol=1e-8, atol=0.0)
    gain = (problem.bound * found.dual).sum(-1)
    torch.testing.assert_close(gain[optimal], expected.value[optimal], rtol=2e-9, atol=0.0)


@needs_triton
def test_the_kernel_starts_from_given_multipliers() -> None:
    problem = tokens(4, 4, 6, 2).to(DEVICE)
    cold = _walk_alone(problem)
    warm = entry._warm(problem, Nuclear(), cold)
    answer = solve_from_frobenius(problem, warm, "lockstep", walk_fused, "")
    again = entry._deliver(problem, Nuclear(), *answer)
    assert bool(again.optimal.all())
    torch.testing.assert_close(again.value, cold.value, rtol=2e-9, atol=0.0)
    assert bool((again.W != cold.W).any())


def test_members_that_the_kernel_leaves_are_solved_in_lockstep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = tokens(4, 5, 6, 4)
    expected = am.solve(problem, "nuc")
    original, sizes = entry.solve_nuclear, []

    def spoiled(
        problem: am.MarginProblem, start: object, method: str, enough: float
    ) -> tuple[torch.Tensor, ...]:
        sizes.append((method, problem.batch_shape.numel()))
        answer = original(problem, None, "lockstep", enough)
        if method == "fused":
            answer[1][1:3] = 0.0
        return answer

    monkeypatch.setattr(entry, "solve_nuclear", spoiled)
    monkeypatch.setattr(entry, "fits_nuclear", lambda problem: True)
    solution = am.solve(problem, "nuc")
    assert sizes == [("fused", 4), ("lockstep", 2)]
    torch.testing.assert_close(solution.value, expected.value, rtol=1e-9, atol=0.0)


def test_the_kernel_asks_for_a_gpu_and_narrow_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tokens(2, 3, 3, 2)
    assert not fits_nuclear(problem)
    assert is_narrow(problem)
    assert not is_narrow(tokens(13, 6, 3, 1))
    assert not is_narrow(tokens(17, 2, 20, 1))
    assert not is_narrow(tokens(2, 3, 65, 1))
    fused = import_module("attnmargin.solvers.frobenius.fused")
    monkeypatch.setattr(fused, "find_spec", lambda name: None)
    with pytest.raises(am.MissingPackageError, match="'fused' needs a package that is missing"):
        am.solve(problem, "nuc", method="fused")
    monkeypatch.setattr(fused, "find_spec", lambda name: name)
    with pytest.raises(am.InputError, match=r"got 'fused' with tensors on cpu; needs .* a GPU"):
        am.solve(problem, "nuc", method="fused")
    nuclear = import_module("attnmargin.solvers.interior.fused")
    monkeypatch.setattr(nuclear, "check_fused", lambda problem: None)
    with pytest.raises(am.InputError, match=r"got 'fused' with 65 rows .* at most 64 rows"):
        check_fused_nuclear(tokens(13, 6, 3, 1))


@needs_gpu
@pytest.mark.parametrize("shape", [(5, 5, 5), (6, 8, 10), (5, 5, 20), (12, 5, 16)])
def test_on_a_gpu_every_member_is_settled(shape: tuple[int, int, int]) -> None:
    problem = tokens(*shape, 500)
    expected, found = am.solve(problem, "nuc"), am.solve(problem.to("cuda"), "nuc")
    assert bool(found.optimal.all())
    torch.testing.assert_close(found.value.cpu(), expected.value, rtol=2e-9, atol=0.0)
    alone = am.solve(problem.to("cuda"), "nuc", method="fused")
    assert bool(alone.optimal.all())
