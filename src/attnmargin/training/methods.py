"""Settings of the training methods: steepest descent in any norm, and Adam."""

import math
from dataclasses import dataclass
from typing import final

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.margin.implied import METHODS
from attnmargin.margin.implied import Evidence as Evidence
from attnmargin.margin.implied import Implication as Implication
from attnmargin.margin.implied import implication as implication
from attnmargin.margin.norms import Frobenius, Lp, Norm, as_norm
from attnmargin.training.rates import Decaying as Decaying
from attnmargin.training.rules import Mirror, Rule
from attnmargin.training.steepest import AdamRule, SteepestRule


@final
@dataclass(frozen=True)
class Steepest:
    """Steepest descent in a norm, with momentum.

        M ← momentum · M + G,      W ← W + η V,      V = argmax ⟨M, V⟩ over ‖V‖ ≤ 1

    G is the negative gradient. "spectral" is Muon without its approximations, "max" is sign descent
    (with momentum, signum), "fro" gradient descent. Training that does not normalise steps by
    ``η ‖M‖_* V`` with the dual norm.

    Args:
        norm: "spectral", "max", "sum", "fro", "rows", "columns", "nuc", a power p, or a norm.
        momentum: from 0 to below 1.
        nesterov: step along ``G + momentum · M``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 6, name="train")
        >>> run = am.train(data, method=am.methods.Steepest("spectral", momentum=0.9), steps=10)
        >>> float(am.norms.Spectral().value(run.W[1]).round(decimals=12))
        0.1
    """

    norm: str | float | Norm
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", as_norm(self.norm))
        object.__setattr__(self, "momentum", _share("momentum", self.momentum))
        if not isinstance(self.nesterov, bool) or (self.nesterov and self.momentum == 0.0):
            got = f"{self.nesterov!r} with momentum {self.momentum:g}"
            raise InputError("nesterov", got, "True, with a momentum, or False")

    @property
    def plain(self) -> bool:
        """Whether this is gradient descent: "fro" without momentum."""
        return as_norm(self.norm) in (Frobenius(), Lp(2.0)) and self.momentum == 0.0

    def rule(self, normalize: bool, log_penalty: float | None) -> Rule:
        """Return the rule of a run."""
        norm = as_norm(self.norm)
        if self.plain:
            return Mirror(2.0, normalize, log_penalty)
        return SteepestRule(norm, self.momentum, self.nesterov, normalize, log_penalty)


@final
@dataclass(frozen=True)
class Adam:
    """Adam, at gradients of any size.

        m ← β₁ m + (1 − β₁) G,   v ← β₂ v + (1 − β₂) G²,   W ← W + η m̂ / (√v̂ + ε)

    The hats divide by ``1 − β₁ᵏ`` and ``1 − β₂ᵏ`` after k steps. ε is absolute, as in
    ``torch.optim.Adam``: once the softmax saturates, gradients fall below ε, and Adam stops. With
    ``eps=0`` it goes on for ever; then ``betas=(0, 0)`` is sign descent.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 6, name="train")
        >>> run = am.train(data, method=am.methods.Adam(eps=0.0), lr=0.01, steps=10)
        >>> float(run.W[1].abs().max().round(decimals=12))
        0.01
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError("betas", repr(self.betas), "a pair of numbers from 0 to below 1")
        object.__setattr__(self, "betas", tuple(_share("betas", beta) for beta in self.betas))
        needs = "a finite number that is not negative"
        eps = check_number("eps", self.eps, needs)
        if not 0.0 <= eps < math.inf:
            raise InputError("eps", repr(self.eps), needs)
        object.__setattr__(self, "eps", eps)

    def rule(self, normalize: bool, log_penalty: float | None) -> Rule:
        """Return the rule of a run."""
        return AdamRule(self.betas, self.eps, log_penalty)


Method = str | Steepest | Adam


def _share(name: str, value: float) -> float:
    needs = "a number from 0 to below 1"
    number = check_number(name, value, needs)
    if not 0.0 <= number < 1.0:
        raise InputError(name, repr(value), needs)
    return number


def as_method(method: Method, norm: str | float | Norm | None = None) -> Method:
    """Return "gd" or "mirror", or the settings of the method.

    >>> as_method("steepest", "max")
    Steepest(norm=Max(), momentum=0.0, nesterov=False)
    """
    if isinstance(method, str) and method == "steepest":
        if norm is None:
            raise InputError("norm", "None with method 'steepest'", "a norm, such as 'spectral'")
        return Steepest(norm)
    if norm is not None:
        got = method if isinstance(method, str) else type(method).__name__
        raise InputError("norm", f"{norm!r} with method {got!r}", "method 'steepest'")
    if isinstance(method, Steepest | Adam):
        return method
    if isinstance(method, str) and method == "adam":
        return Adam()
    if not isinstance(method, str) or method not in METHODS:
        known = ", ".join(repr(name) for name in METHODS)
        raise InputError("method", repr(method), f"{known}, or settings from am.methods")
    return method
