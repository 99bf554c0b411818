"""The kernel of :mod:`attnmargin.optim.kernel`; importing it needs Triton."""

# mypy: ignore-errors

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def mirror(w_ptr, g_ptr, lr, n, power, inverse, POINTER: tl.constexpr, BLOCK: tl.constexpr):
    """Update a block: ``w ← ∇ψ⁻¹(∇ψ(w) − lr · g)``; ``power`` is p − 1, ``inverse`` 1/(p − 1)."""
    rate = tl.load(lr) if POINTER else lr
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    old = tl.load(w_ptr + place, mask=inside, other=1.0).to(tl.float32)
    move = tl.load(g_ptr + place, mask=inside, other=0.0).to(tl.float32) * rate
    log_move = tl.log(tl.abs(move))
    log_x = log_move - power * tl.log(tl.abs(old))
    size = tl.exp(-tl.abs(log_x))
    ratio = tl.where((move < 0.0) == (old < 0.0), size, -size)
    rest = libdevice.log1p(-ratio)
    near = old * tl.exp(rest * inverse)
    length = tl.exp((log_move + rest) * inverse)
    far = tl.where(move < 0.0, length, -length)
    new = tl.where(log_x <= 0.0, near, far)
    new = tl.where(move == 0.0, old, new)
    tl.store(w_ptr + place, new.to(w_ptr.dtype.element_ty), mask=inside)


@triton.jit
def sign(w_ptr, g_ptr, lr, n, POINTER: tl.constexpr, BLOCK: tl.constexpr):
    """Update a block: ``w ← w − lr · sign(g)``."""
    rate = tl.load(lr) if POINTER else lr
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    old = tl.load(w_ptr + place, mask=inside, other=0.0).to(tl.float32)
    move = tl.load(g_ptr + place, mask=inside, other=0.0).to(tl.float32)
    step = tl.where(move > 0.0, rate, tl.where(move < 0.0, -rate, move))
    tl.store(w_ptr + place, (old - step).to(w_ptr.dtype.element_ty), mask=inside)
