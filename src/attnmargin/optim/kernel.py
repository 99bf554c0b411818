"""The mirror update as one GPU kernel: one read of weight and gradient, one write.

The formulas are the same as in :func:`attnmargin.margin.norms.mirror_step`, in float32. The kernel
needs Triton, which comes with the GPU builds of PyTorch.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

BLOCK = 1024
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

    pointer = isinstance(lr, Tensor)
    rate = lr.to(w.device, torch.float32).reshape(1) if isinstance(lr, Tensor) else float(lr)
    n = w.numel()
    blocks = (-(-n // BLOCK),)
    with torch.cuda.device(w.device):
        mirror[blocks](
            w, g, rate, n, p - 1.0, 1.0 / (p - 1.0), POINTER=pointer, BLOCK=BLOCK
        )  # fmt: skip
