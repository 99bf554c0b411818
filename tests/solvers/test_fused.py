"""The kernel for batches of small Frobenius problems.

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
from attnmargin.margin.norms import Frobenius
from attnmargin.solvers.frobenius.fused import check_fused, fits, is_small, solve_fused
from attnmargin.solvers.frobenius.method import flatten
from tests.fused import DEVICE, needs_gpu, needs_triton, sets, tokens

entry = import_module("attnmargin.solvers.entry")

# The interpreter of Triton uses what NumPy has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def _bounds(trials: int) -> am.MarginProblem:
    problem = tokens(4, 4, 6, trials)
    rng = np.random.default_rng(0)
    return replace(problem, bound=torch.from_numpy(rng.uniform(-0.5, 3.0, problem.bound.shape)))


def _scaled(trials: int) -> am.MarginProblem:
    problem = tokens(4, 4, 6, trials)
    return replace(problem, left=problem.left * 1e-30, query=problem.query * 1e12)


def _repeated(trials: int) -> am.MarginProblem:
    """Every row twice, all with one query: dependent rows, and multipliers that are not unique."""
    problem = tokens(4, 4, 6, trials)
    same = torch.arange(12) // 2 * 2
    return replace(problem, left=problem.left[:, same], query=problem.query[:, [0] * 4])


def _flat_rows(trials: int) -> am.MarginProblem:
    """Rows of zeros that any W satisfies."""
    problem = tokens(4, 4, 6, trials)
    zero = torch.arange(12) % 5 == 0
    left, bound = problem.left.masked_fill(zero[:, None], 0.0), problem.bound * ~zero
    return replace(problem, left=left, bound=bound)


def _kernel_alone(problem: am.MarginProblem) -> am.Solution:
    """Certify what the kernel returns, with no other method behind it."""
    return entry._deliver(problem, Frobenius(), *solve_fused(flatten(problem)))


@needs_triton
@pytest.mark.parametrize(
    "build",
    [
        lambda: tokens(5, 5, 5, 4),
        lambda: tokens(6, 8, 10, 1),
        lambda: tokens(2, 3, 20, 3),
        lambda: sets(4, 4, 4, 6),
        lambda: sets(4, 6, 2, 6),
        lambda: _bounds(4),
        lambda: _scaled(3),
        lambda: _repeated(3),
        lambda: _flat_rows(3),
    ],
    ids=["20 rows", "42 rows", "wide", "sets", "few", "bounds", "scaled", "repeated", "zeros"],
)
def test_the_kernel_agrees_with_the_active_set_method(
    build: Callable[[], am.MarginProblem],
) -> None:
    problem = build()
    expected, found = am.solve(problem), _kernel_alone(problem.to(DEVICE)).to("cpu")
    assert (found.status == expected.status).all()
    torch.testing.assert_close(found.W, expected.W, rtol=1e-9, atol=1e-9, equal_nan=True)
    optimal = expected.optimal
    gain = (problem.bound * found.dual).sum(-1)
    torch.testing.assert_close(gain[optimal], expected.value[optimal])
    torch.testing.assert_close(gain[~optimal], torch.ones_like(gain[~optimal]))
    length = torch.linalg.vector_norm(problem.adjoint(found.dual), dim=(1, 2))
    torch.testing.assert_close(length[optimal], torch.ones_like(length[optimal]))


@needs_triton
def test_the_kernel_claims_nothing_about_rows_that_it_cannot_scale() -> None:
    problem = tokens(4, 4, 6, 3).to(DEVICE)
    left = problem.left.clone()
    left[1] *= 1e-120
    found = _kernel_alone(replace(problem, left=left))
    assert found.status.tolist() == ["optimal", "inaccurate", "optimal"]
    assert bool((found.W[1] == 0).all())


def test_members_that_the_kernel_leaves_are_solved_in_lockstep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = tokens(4, 5, 6, 4)
    expected = am.solve(problem)
    original, sizes = entry.solve_frobenius, []

    def spoiled(problem: am.MarginProblem, start: object, method: str) -> tuple[torch.Tensor, ...]:
        sizes.append((method, problem.batch_shape.numel()))
        answer = original(problem, None, "lockstep")
        if method == "fused":
            answer[1][1:3] = 0.0
        return answer

    monkeypatch.setattr(entry, "solve_frobenius", spoiled)
    monkeypatch.setattr(entry, "fits", lambda problem: True)
    solution = am.solve(problem)
    assert sizes == [("fused", 4), ("lockstep", 2)]
    torch.testing.assert_close(solution.W, expected.W)


def test_other_norms_do_not_use_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "fits", lambda problem: True)
    assert am.solve(tokens(2, 3, 3, 2), 3.0).optimal.all()
    with pytest.raises(am.InputError, match="one of auto, interior, lockstep"):
        am.solve(tokens(2, 3, 3, 2), 3.0, method="fused")


def test_the_kernel_asks_for_a_gpu_and_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tokens(2, 3, 3, 2)
    assert not fits(problem)
    assert is_small(problem)
    assert not is_small(tokens(20, 8, 3, 1))
    fused = import_module("attnmargin.solvers.frobenius.fused")
    monkeypatch.setattr(fused, "find_spec", lambda name: None)
    with pytest.raises(am.MissingPackageError, match="'fused' needs a package that is missing"):
        am.solve(problem, method="fused")
    monkeypatch.setattr(fused, "find_spec", lambda name: name)
    with pytest.raises(am.InputError, match=r"got 'fused' with tensors on cpu; needs .* a GPU"):
        check_fused(problem)


@needs_gpu
@pytest.mark.parametrize("shape", [(5, 5, 5), (6, 8, 10), (5, 5, 20), (20, 5, 40)])
def test_on_a_gpu_every_member_is_settled(shape: tuple[int, int, int]) -> None:
    problem = tokens(*shape, 500)
    expected, found = am.solve(problem), am.solve(problem.to("cuda"))
    assert bool(found.optimal.all())
    torch.testing.assert_close(found.W.cpu(), expected.W, rtol=1e-8, atol=1e-9)
    alone = am.solve(problem.to("cuda"), method="fused")
    assert bool(alone.optimal.all())
