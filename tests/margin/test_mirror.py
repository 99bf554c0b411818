"""One mirror step: that of training and that of the optimiser."""

import pytest
import torch

import attnmargin as am
from attnmargin.margin.norms import inverse_mirror, mirror, mirror_step
from attnmargin.training.rules import Mirror


def drawn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("by_logs", [False, True])
@pytest.mark.parametrize("p", [1.1, 1.75, 2.0, 3.0])
def test_the_gradient_of_the_potential_moves_by_the_step(p: float, by_logs: bool) -> None:
    w, step = drawn(2, 50).unbind(0)
    moved = mirror(mirror_step(w, step, p, by_logs=by_logs), p)
    torch.testing.assert_close(moved, mirror(w, p) - step, rtol=1e-9, atol=1e-12)


def test_training_takes_this_step_to_the_bit() -> None:
    x, D = drawn(2, 3, 4, 4).unbind(0)
    one = torch.ones(3, 1, 1, dtype=torch.float64)
    lr, log_scale = 0.3 * one, 0.0 * one
    powers = torch.tensor([1.2, 2.0, 3.0], dtype=torch.float64)[:, None, None]
    for p in (1.5, 2.0, powers):
        found = Mirror(p, False, None).step(x, D, log_scale, lr)
        assert torch.equal(found, mirror_step(x, -0.3 * D, p, by_logs=False))
        assert torch.equal(found, inverse_mirror(mirror(x, p) + 0.3 * D, p))


def test_the_optimiser_takes_this_step_to_the_bit() -> None:
    w, g = drawn(2, 30).unbind(0)
    own = torch.nn.Parameter(w.clone())
    own.grad = g
    am.MirrorDescent([own], lr=0.3, p=1.5).step()
    assert torch.equal(own.detach(), mirror_step(w, 0.3 * g, 1.5))


def test_logarithms_keep_small_weights_and_zero_steps() -> None:
    w = torch.tensor([1e-9, 0.3, -0.7])
    step = torch.zeros(3)
    assert torch.equal(mirror_step(w, step, 8.0), w)
    assert float(mirror_step(w, step, 8.0, by_logs=False)[0]) == 0.0  # 1e-63 is zero in float32
    half = mirror_step(w.bfloat16(), step.bfloat16(), 1.5)
    assert half.dtype == torch.bfloat16
