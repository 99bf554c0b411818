"""The fused update."""

import pytest
import torch

import attnmargin as am
from attnmargin.optim.kernel import can_fuse, fits, update_by_signs
from tests.fused import needs_gpu


def test_the_fused_update_asks_for_a_gpu() -> None:
    w = torch.nn.Parameter(torch.ones(4))
    w.grad = torch.ones(4)
    assert not fits(w, w.grad)
    assert can_fuse() == torch.cuda.is_available()
    with pytest.raises(am.InputError, match=r"fused: got True with torch\.float32 on cpu"):
        am.MirrorDescent([w], p=1.5, fused=True).step()


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_signs_are_plain_signs(dtype: torch.dtype) -> None:
    draw = torch.Generator("cuda").manual_seed(0)
    w = torch.randn(1000, 1001, generator=draw, device="cuda").to(dtype)
    g = torch.randn(1000, 1001, generator=draw, device="cuda").to(dtype)
    g[:, :7] = 0.0
    expected = (w.float() - 0.1 * g.float().sign()).to(dtype)
    for rate in (0.1, torch.tensor(0.1, device="cuda")):
        own = w.clone()
        update_by_signs(own, g, rate)
        torch.testing.assert_close(
            own, expected, rtol=0, atol=1e-7 if dtype == torch.float32 else 1e-2
        )
        assert torch.equal(own[:, :7], w[:, :7])
