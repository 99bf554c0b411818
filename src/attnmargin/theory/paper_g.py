"""Paper G, "Weight Decay Induces Low-Rank Attention Layers", as checks."""

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.theory.check import Check, fails, outcome
from attnmargin.training.decay import factor_gradients
from attnmargin.training.measures import imbalance, nuclear_excess


def check_decay(
    gradient: Array, A: Array, B: Array, decay: float, tolerance: float = 1e-6
) -> list[Check]:
    """Check the statements of paper G (Kobayashi et al., 2410.23819) at a point of training.

        F(A, B) = L(A Bᵀ) + decay/2 (‖A‖² + ‖B‖²)

    The nuclear statement is a certificate: ``W = A Bᵀ`` minimises ``L(W) + decay ‖W‖_*``, for
    convex L, if and only if ``‖∇L‖ ≤ decay`` in the spectral norm and ``−⟨∇L, W⟩ = decay ‖W‖_*``.
    Saddle points of F have a larger gradient.

    Args:
        gradient: ∇L at ``A Bᵀ``, ``(*B, d, e)``.
        A, B: factors ``(*B, d, m)`` and ``(*B, e, m)``.
        decay: λ > 0.
        tolerance: what counts as zero, relative to the size of each statement's terms.

    Example:
        >>> import attnmargin as am
        >>> A = B = [[0.5**0.5]]  # L = ½ (w − 1)², λ = ½: w = ½
        >>> for check in am.theory.check_decay([[-0.5]], A, B, 0.5):
        ...     print(f"{check.label}: {check.outcome}")
        G: Stationary point: holds
        G: Balance: holds
        G: Nuclear norm: holds
        G: Minimum in the nuclear norm: holds
    """
    decay = check_number("decay", decay, "a positive number")
    if not 0.0 < decay < float("inf"):
        raise InputError("decay", f"{decay:g}", "a positive number")
    first, second = (finite(name, floats(name, x)) for name, x in (("A", A), ("B", B)))
    G = finite("gradient", floats("gradient", gradient, like=first))
    W = first @ second.mT
    if W.shape[-2:] != G.shape[-2:]:
        raise InputError("gradient", f"shape {tuple(G.shape)}", f"{tuple(W.shape)}, that of A Bᵀ")
    size = 0.5 * (first.square().sum((-2, -1)) + second.square().sum((-2, -1)))
    near = _Near(tolerance, size)
    slopes = factor_gradients(lambda _: G, first, second, decay)
    rest = sum((part.square().sum((-2, -1)) for part in slopes), torch.zeros_like(size)).sqrt()
    return [
        near.check("Stationary point", "No step of the factors lowers the loss to first order.",
                   {"norm of the gradient": rest / decay}),
        near.check("Balance", "Both factors carry as much: AᵀA = BᵀB.",
                   {"‖AᵀA − BᵀB‖": imbalance(first, second)}),
        near.check("Nuclear norm", "Half of the squared lengths is the nuclear norm of A Bᵀ.",
                   {"½ (‖A‖² + ‖B‖²) − ‖A Bᵀ‖_*": nuclear_excess(first, second)}),
        _minimum(near, G, W, decay),
    ]  # fmt: skip


class _Near:
    """What counts as zero at a point of a given size."""

    def __init__(self, tolerance: float, size: Tensor) -> None:
        self.limit = tolerance * (1.0 + size)

    def check(self, name: str, meaning: str, numbers: dict[str, Tensor]) -> Check:
        """Check that all numbers are near zero."""
        good = torch.stack([value.abs() <= self.limit for value in numbers.values()]).all(0)
        return Check("G", name, meaning, outcome(good), numbers)


def _minimum(near: _Near, G: Tensor, W: Tensor, decay: float) -> Check:
    meaning = "A Bᵀ minimises the loss with the nuclear norm as penalty, if the loss is convex."
    pull = -(G * W).sum((-2, -1)) / decay
    above = torch.linalg.matrix_norm(G, 2) / decay - 1.0
    numbers = {
        "nuclear norm less the pull of the loss over λ": torch.linalg.svdvals(W).sum(-1) - pull,
        "‖∇L‖/λ − 1, where positive": above.clamp_min(0.0),
    }
    found = near.check("Minimum in the nuclear norm", meaning, numbers)
    bad = bool(fails(found.outcome).any())
    note = "a saddle point of the factors may rest without being a minimum" if bad else ""
    return Check("G", found.name, meaning, found.outcome, numbers, note)
