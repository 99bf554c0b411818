"""The fused update."""

import pytest
import torch

import attnmargin as am
from attnmargin.optim.kernel import can_fuse, fits


def test_the_fused_update_asks_for_a_gpu() -> None:
    w = torch.nn.Parameter(torch.ones(4))
    w.grad = torch.ones(4)
    assert not fits(w, w.grad)
    assert can_fuse() == torch.cuda.is_available()
    with pytest.raises(am.InputError, match=r"fused: got True with torch\.float32 on cpu"):
        am.MirrorDescent([w], p=1.5, fused=True).step()
