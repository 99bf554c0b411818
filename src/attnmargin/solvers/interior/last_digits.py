"""The last digits of norms of groups: Newton's method on the rows and groups that hold.

Near the end of the central path the distance of ``‖w_k‖`` from t is a difference of almost equal
numbers, and steps lose half of their digits. Which rows and groups hold is known by then. With
``V = Aᵀλ`` over the rows that hold, the optimum solves

    ⟨a_i, w⟩ = b_i,   ‖w_k‖ = t and v_k = σ_k w_k (groups that hold),   v_k = 0 (others),
    Σ σ_k t = 1,

as many smooth equations as unknowns. Where they leave something open, it stays where it was.
"""

import torch
from torch import Tensor

_STEPS = 6
# A step that changes nothing by more is the last, relative to the largest number.
_STILL = 1e-15
# Singular values below this share of the largest come from rows that depend on each other.
_DEPENDENT = 1e-11
# More unknowns than this are not worth the time.
MOST_UNKNOWNS = 600


def newton_on_groups(
    A: Tensor, b: Tensor, held: Tensor, w: Tensor, dual: Tensor, active: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Solve one problem from a good start; return w and multipliers, or None if it diverges.

    Args:
        A: rows ``(M, G, m)`` with bounds b ``(M,)``.
        held: rows that hold, bool ``(M,)``.
        w: groups ``(G, m)``; not zero where active.
        dual: ``(M,)``, of size ``Σ ‖v_k‖ = 1``.
        active: groups as long as the longest, bool ``(G,)``.
    """
    G, m = w.shape
    A, b, rows = A[held].flatten(1), b[held], held.nonzero().flatten()
    x, y = w.flatten(), dual[held]
    t = torch.linalg.vector_norm(w, dim=-1).amax()
    V = (A.mT @ y).unflatten(-1, (G, m))
    sigma = (torch.linalg.vector_norm(V, dim=-1) / t)[active]
    N, H, a = G * m, len(rows), len(sigma)
    if N + H + a + 1 > MOST_UNKNOWNS or a == 0:
        return None
    places = active.nonzero().flatten()
    for _ in range(_STEPS):
        w = x.unflatten(-1, (G, m))
        own = w[places]
        V = (A.mT @ y).unflatten(-1, (G, m)).clone()
        V[places] -= sigma.unsqueeze(-1) * own
        missing = torch.cat(
            (
                A @ x - b,
                0.5 * ((own * own).sum(-1) / t - t),
                V.flatten(),
                (sigma.sum() * t - 1.0)[None],
            )
        )
        J = x.new_zeros(len(missing), N + H + a + 1)
        J[:H, :N] = A
        grid = torch.arange(N).unflatten(-1, (G, m))[places]  # entries of the active groups
        for k in range(a):
            J[H + k, grid[k]] = own[k] / t
            J[H + a + grid[k], grid[k]] = -sigma[k]
            J[H + a + grid[k], N + H + k] = -own[k]
        J[H : H + a, -1] = -0.5 * ((own * own).sum(-1) / t**2 + 1.0)
        J[H + a : H + a + N, N : N + H] = A.mT
        J[-1, N + H : N + H + a] = t
        J[-1, -1] = sigma.sum()
        step = torch.linalg.lstsq(J, -missing, rcond=_DEPENDENT, driver="gelsd").solution
        if not bool(torch.isfinite(step).all()):
            return None
        x, y = x + step[:N], y + step[N : N + H]
        sigma, t = sigma + step[N + H : N + H + a], t + step[-1]
        if float(step.abs().max()) <= _STILL * float(x.abs().max() + y.abs().max()):
            break
    found = torch.zeros_like(dual)
    found[rows] = y
    return x.unflatten(-1, (G, m)), found
