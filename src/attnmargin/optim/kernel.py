"""Updates as one GPU kernel each: one read of weight and gradient, one write.

The formulas are the same as in :func:`attnmargin.margin.norms.mirror_step`, and those of sign
descent, in float32. The kernels need Triton, which comes with the GPU builds of PyTorch.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

BLOCK = 1024
# Parameters with fewer entries do not justify their own kernel.
WORTH_A_KERNEL = 1 << 14
_KINDS = (torch.float32, torch.bfloat16, torch.float16)


@cache
def can_fuse() -> bool:
    """Check whether Triton and a GPU are available."""
    return find_spec("triton") is not None and torch.cuda.is_available()


def fits(w: Tensor, g: Tensor) -> bool:
    """Check whether the kernel can update w by g: both dense on one GPU, not in float64."""
    plain = w.is_cuda and g.device == w.device and w.dtype in _KINDS and g.dtype in _KINDS
    return plain and w.is_contiguous() and g.is_contiguous() and can_fuse()


def update(w: Tensor, g: Tensor, lr: float | Tensor, p: float) -> None:
    """Update ``∇ψ(w) ← ∇ψ(w) − lr · g`` in place."""
    from attnmargin.optim.triton_kernel import mirror

    _launch(mirror, w, g, lr, p - 1.0, 1.0 / (p - 1.0))


def update_by_signs(w: Tensor, g: Tensor, lr: float | Tensor) -> None:
    """Update ``w ← w − lr · sign(g)`` in place."""
    from attnmargin.optim.triton_kernel import sign

    _launch(sign, w, g, lr)


def _launch(kernel: Any, w: Tensor, g: Tensor, lr: float | Tensor, *powers: float) -> None:
    """Run a kernel over all entries; the rate is read on the GPU if it is there."""
    pointer = isinstance(lr, Tensor)
    rate = lr.to(w.device, torch.float32).reshape(1) if isinstance(lr, Tensor) else float(lr)
    n = w.numel()
    blocks = (-(-n // BLOCK),)
    with torch.cuda.device(w.device):
        kernel[blocks](w, g, rate, n, *powers, POINTER=pointer, BLOCK=BLOCK)
