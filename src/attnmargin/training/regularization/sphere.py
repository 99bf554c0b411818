"""Weights on a sphere, and the least loss there."""

import math
from typing import Any

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.base.arrays import tiny
from attnmargin.base.errors import InputError
from attnmargin.margin.norms import inverse_mirror, mirror, power_norm
from attnmargin.training.regularization.descent import Function, minimise
from attnmargin.training.regularization.landscape import WeightsLandscape
from attnmargin.training.start import factor_start, movable_start
from attnmargin.training.weights import Entries, Factors

_ITERATIONS, _TOLERANCE = 2000, 1e-9
_ROUGH_ITERATIONS, _ROUGH_TOLERANCE = 60, 1e-3
# Largest factor by which the radius grows at once.
_GROWTH = 1.5
# Share of noise added to the factors before every minimisation.
_STIR = 0.03
# Share of the largest entry that replaces exact zeros in the dual.
_OFF = 1e-3


class Ball:
    """The unit sphere of ‖·‖_p, parametrised by a free V ``(B, k)``.

    Its points are ``V / ‖V‖_p``. For p < 2, where many entries are near zero and the norm bends
    sharply, V lives in the dual: points are ``∇ψ_q(V) / ‖·‖_p`` with ``1/p + 1/q = 1``.
    """

    def __init__(self, p: float) -> None:
        self.p, self.power = p, p / (p - 1.0) if p < 2.0 else p

    def norm(self, V: Tensor) -> Tensor:
        return power_norm(V.unsqueeze(-1), self.power)[..., 0].clamp_min(tiny(V))

    def point(self, V: Tensor) -> Tensor:
        """Map V to its point on the sphere."""
        unit = V / self.norm(V)
        return mirror(unit, self.power) if self.p < 2.0 else unit

    def free(self, x: Tensor) -> Tensor:
        """Find a V for the direction of x.

        In the dual an entry that is exactly zero has no gradient, so it starts a little off.
        """
        if self.p >= 2.0:
            return x
        V = inverse_mirror(x, self.power)
        return V.where(x != 0, _OFF * V.abs().amax(-1, keepdim=True))

    def chain(self, g: Tensor, V: Tensor) -> Tensor:
        """Pull a gradient at the point back to V."""
        size = self.norm(V)
        unit = V / size
        if self.p < 2.0:
            g = g * (self.power - 1.0) * unit.abs() ** (self.power - 2.0)
        outward = mirror(unit, self.power)  # ∇‖V‖
        return (g - (g * unit).sum(-1, keepdim=True) * outward) / size

    def minimum(self, function: Function, V: Tensor, radius: float, rough: bool = False) -> Tensor:
        """Minimise the function from V, roughly if ``rough``."""
        start = V / self.norm(V)
        if rough:
            return minimise(function, start, _ROUGH_ITERATIONS, _ROUGH_TOLERANCE)
        return minimise(function, start, _ITERATIONS, _TOLERANCE * (1.0 + 0.1 * radius))


class Sphere:
    """Weights on a sphere of given radius, and their log-loss."""

    def __init__(
        self,
        goal: Objective,
        parameter: str,
        p: float,
        init: Any,
        width: int | None,
        seed: int,
        tokens: Tensor | None = None,
        cone: float = 0.0,
    ) -> None:
        self.goal, self.flat, self.ball = goal, goal.flat, Ball(p)
        self.tokens = tokens
        self.radius: float | None = None
        self.weights = movable_start(self.flat, parameter, init, width, seed)
        if init is None and isinstance(self.weights, Entries):
            self.weights.place(self.weights.pull(goal.slope(self.weights.logits())))
        if isinstance(self.weights, Factors):
            m = self.weights.K.shape[-1]
            noise = factor_start(self.flat, None, m, seed + 1).vector()
            self.noise = noise / noise.norm(dim=-1, keepdim=True)
        self.landscape = WeightsLandscape(goal, self.weights, tokens, cone)
        self.V = self.ball.free(self.weights.vector())

    def descend(self, radius: float, guide: "Sphere | None" = None) -> None:
        """Move the weights to the minimum on the sphere of this radius.

        A guide's minimum is a second start; the better end point wins.
        """
        self._approach(radius)
        ends = [self._minimum(self.V)]
        if guide is not None:
            guide.descend(radius)
            ends.append(self._minimum(guide.V))
        values = torch.stack([self._value(V)[0] for V in ends])
        best = values.argmin(0)
        self.V = torch.stack(ends)[best, torch.arange(len(best), device=best.device)]
        self._place(self.V)

    def _approach(self, radius: float) -> None:
        """Grow to a radius by small factors: a softmax that saturates too early cannot turn back.

        A local path starts directly at its first radius.
        """
        goal = math.sqrt(2.0 * radius) if isinstance(self.weights, Factors) else radius
        if self.radius is None:
            self.radius = goal if self.tokens is not None else min(goal, 1.0)
            if self.tokens is not None and not bool(torch.isfinite(self._value(self.V)[0]).all()):
                needs = "a start in the cone of the selection (Definition 3), such as its SVM"
                raise InputError("init", "weights outside of the cone", needs)
        while _GROWTH * self.radius < goal:
            self.radius *= _GROWTH
            self.V = self._minimum(self.V, rough=True)
        self.radius = goal

    def unit(self) -> Tensor:
        """Scale V to norm one."""
        return self.V / self.ball.norm(self.V)

    def _minimum(self, V: Tensor, rough: bool = False) -> Tensor:
        if isinstance(self.weights, Factors):
            # Low-rank factors stay low-rank: a little noise in every direction lets the rank grow.
            V = V / self.ball.norm(V) + _STIR * self.noise
        assert self.radius is not None
        return self.ball.minimum(self._value, V, self.radius, rough)

    def _place(self, V: Tensor) -> None:
        """Set the weights to the point of V on the sphere."""
        assert self.radius is not None
        self.weights.place(self.radius * self.ball.point(V))

    def _value(self, V: Tensor) -> tuple[Tensor, Tensor]:
        """Compute ``log(L − L⋆)`` and its gradient in V; infinite outside the cone."""
        assert self.radius is not None
        value, g = self.landscape.at(self.radius * self.ball.point(V))
        return value, self.radius * self.ball.chain(g, V)
