"""Steps of steepest descent in any norm, and of Adam, at gradients of any size.

Moments of the gradients are kept with a logarithmic scale (:class:`Scaled`): where the softmax
saturates, gradients of 1e-5000 still have a direction.
"""

from typing import final

from torch import Tensor

from attnmargin.margin.norms import Norm
from attnmargin.training.rules import Rule, penalised
from attnmargin.training.scaled import Scaled


@final
class SteepestRule(Rule):
    """``x⁺ = x + lr V``, where V of unit norm maximises ``⟨M, V⟩``; not normalised, ``lr ‖M‖_* V``.

    M is the negative gradient ``G``, or with momentum ``M ← momentum M + G``; Nesterov's variant
    steps along ``G + momentum M``.
    """

    def __init__(
        self,
        norm: Norm,
        momentum: float,
        nesterov: bool,
        normalize: bool,
        log_penalty: float | None,
    ) -> None:
        self.norm, self.momentum, self.nesterov = norm, momentum, nesterov
        self.normalize, self.log_penalty = normalize, log_penalty
        self.memory: dict[str, Scaled] = {}

    def step(self, x: Tensor, D: Tensor, log_scale: Tensor, lr: Tensor, part: str = "W") -> Tensor:
        G = Scaled.of(*penalised(x, D, log_scale, self.log_penalty))
        M = self._heavy(G, part) if self.momentum > 0.0 else G
        V = self.norm.steepest(M.value)
        if self.normalize:
            return x + lr * V
        return x + lr * M.scale.exp() * self.norm.dual_value(M.value)[..., None, None] * V

    def _heavy(self, G: Scaled, part: str) -> Scaled:
        old = self.memory.get(part)
        M = G if old is None else old.times(self.momentum) + G
        self.memory[part] = M
        return G + M.times(self.momentum) if self.nesterov else M


@final
class AdamRule(Rule):
    """Adam: ``x⁺ = x + lr m̂ / (√v̂ + ε)`` with the moments m and v of the negative gradient ``G``.

        m ← β₁ m + (1 − β₁) G,   m̂ = m / (1 − β₁ᵏ),   v ← β₂ v + (1 − β₂) G²,   v̂ = v / (1 − β₂ᵏ)

    Adam divides by the size of the gradient anyway, so there is nothing to normalise.
    """

    normalize = True

    def __init__(self, betas: tuple[float, float], eps: float, log_penalty: float | None) -> None:
        self.betas, self.eps, self.log_penalty = betas, eps, log_penalty
        self.memory: dict[str, tuple[int, Scaled, Scaled]] = {}

    def step(self, x: Tensor, D: Tensor, log_scale: Tensor, lr: Tensor, part: str = "W") -> Tensor:
        G = Scaled.of(*penalised(x, D, log_scale, self.log_penalty))
        nothing = 0, Scaled.zero(D), Scaled.zero(D)
        (one, two), (k, m, root) = self.betas, self.memory.get(part, nothing)
        m = m.times(one) + G.times(1.0 - one)
        root = root.times(two**0.5).hypot(G.times((1.0 - two) ** 0.5))  # the root of v
        self.memory[part] = k + 1, m, root
        m, root = m.times(1.0 / (1.0 - one ** (k + 1))), root.times((1.0 - two ** (k + 1)) ** -0.5)
        return x + lr * m.over(root, self.eps)
