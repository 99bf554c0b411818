"""The soft margin of one matrix: its margin, if queries that it decides badly may be paid for."""

import torch
from torch import Tensor


def soft_margin(leads: Tensor, length: float, price: float) -> float:
    """Compute the soft margin of W, at the scale that suits it best.

        max_{s ≥ 0}  1 / √(‖sW‖² + 2C Σ_q max(0, 1 − s r_q)²)

    The largest soft margin of any W is that of the solution of ``min ½ ‖W‖² + C Σ_q ξ_q²`` over the
    rows, and of its multiples alone. For ``C → ∞`` the soft margin of a W without negative lead is
    its margin ``min_q r_q / ‖W‖``; that of zero is ``1 / √(2Cn)``.

    Args:
        leads: r, the least row of each of n queries, ``(n,)``.
        length: ``‖W‖``.
        price: C.

    Example:
        >>> import torch
        >>> leads = torch.tensor([2.0, 1.0])
        >>> [round(soft_margin(leads, 1.0, price), 3) for price in (0.1, 1.0, 1e9)]
        [2.132, 1.225, 1.0]
    """
    r = leads.double().sort(descending=True).values
    # With the k largest leads paid in full, the best scale is s[k]; they are while s ≥ 1/r[k − 1].
    r = torch.cat((r[r > 0], r[r <= 0]))
    linear, square = (_rest(x) for x in (r, r * r))
    s = (2 * price * linear / (length**2 + 2 * price * square).clamp_min(1e-300)).clamp_min(0.0)
    full = 1.0 / r.where(r > 0, 0.0)
    fits = s <= torch.cat((full, full.new_full((1,), torch.inf)))
    best = s[int(fits.int().argmax())]
    slack = (1.0 - best * r).clamp_min(0.0)
    return float((best * best * length**2 + 2 * price * slack @ slack).rsqrt())


def _rest(x: Tensor) -> Tensor:
    """Sum all but the first 0, 1, …, n entries, ``(n + 1,)``."""
    return torch.cat((x.flip(0).cumsum(0).flip(0), x.new_zeros(1)))
