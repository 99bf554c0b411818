"""One entry for every norm and method: devices, refusals, second opinions."""

from importlib import import_module

import pytest
import torch

import attnmargin as am
from tests.problems import (
    optimal_problem,
    plain_problem,
)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_device_is_kept(device: str) -> None:
    data = am.random_data(4, 5, 6, trials=3, name="device")
    X, z = data.X.to(device), data.z.to(device)
    solution = am.solve(am.token_problem(X, z, am.optimal_tokens(data)))
    parts = (solution.W, solution.dual, solution.value, solution.support, solution.certificate.gap)
    assert {x.device.type for x in parts} == {device}
    assert (solution.status == "optimal").all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"norm": 1.0}, "norm: got p = 1; needs a finite p > 1"),
        (
            {"norm": 3.0, "method": "active-set"},
            "method: got 'active-set'; needs one of auto, interior",
        ),
        ({"norm": "trace"}, "norm: got 'trace'"),
        ({"method": "magic"}, "method: got 'magic'; needs one of auto, active-set, lockstep"),
        ({"warm_start": torch.ones(4)}, "warm_start: got multipliers (4,); needs (9,)"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.solve(plain_problem(1.0), **arguments)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_without_numba_the_torch_method_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnmargin.base.compiled.can_compile", lambda: False)
    for norm, method in (("fro", "active-set"), ("nuc", "interior"), (3, "interior")):
        assert am.solve(plain_problem(1.0), norm).status == "optimal"
        with pytest.raises(am.MissingPackageError, match="pip install"):
            am.solve(plain_problem(1.0), norm, method=method)


def test_what_one_method_leaves_inaccurate_the_other_may_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spoil the first method on two of four members: only these are solved again."""
    entry = import_module("attnmargin.solvers.entry")
    problem = optimal_problem(am.random_data(4, 5, 6, trials=4, name="opinion"))
    expected = am.solve(problem)
    original, sizes = entry.solve_frobenius, []

    def spoiled(problem: am.MarginProblem, start: object, method: str) -> tuple[torch.Tensor, ...]:
        dual, W, outcome, iterations = original(problem, None, method)
        sizes.append((method, problem.batch_shape.numel()))
        if method == "active-set":
            W[1:3] *= 1.01
        return dual, W, outcome, iterations

    monkeypatch.setattr(entry, "solve_frobenius", spoiled)
    solution = am.solve(problem)
    assert sizes == [("active-set", 4), ("lockstep", 2)]
    assert (solution.status == "optimal").all()
    torch.testing.assert_close(solution.W, expected.W)
