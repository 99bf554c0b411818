"""Regularisation paths: the weights of least loss within a growing radius.

    W̄(R) = argmin L(W)  subject to  ‖W‖_p ≤ R          (paper A, W-RP; paper B, ℓp-AttRP)
    argmin L(K Qᵀ)      subject to  ‖K‖² + ‖Q‖² ≤ 2R    (paper A, KQ-RP)

The loss falls in every direction of growing norm, so the radius is attained, and the minimum is
sought on the sphere. What is minimised is ``log(L − L⋆)``, whose value and gradient do not
underflow; each radius starts from the solution before.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from attnmargin.arrays import Array, integers
from attnmargin.attention import Objective, Sequences, Slope, objective
from attnmargin.data import AttentionData
from attnmargin.errors import InputError
from attnmargin.losses import Linear, Loss
from attnmargin.norms import inverse_mirror, mirror, power_norm
from attnmargin.training.descent import Function, minimise
from attnmargin.training.loop import precision_notes
from attnmargin.training.rates import excess
from attnmargin.training.start import factor_start, matrix_start
from attnmargin.training.trajectory import Recorder, Trajectory, Watch
from attnmargin.training.weights import Entries, Factors, keys

_ITERATIONS, _TOLERANCE = 2000, 1e-9
_TINY = 1e-300
# Share of noise in the factors at the start of every radius.
_STIR = 0.03


def regularization_path(
    data: AttentionData,
    radii: Sequence[float],
    parameter: str = "W",
    p: float = 2.0,
    loss: str | Loss = "logistic",
    *,
    selection: Array | None = None,
    cone: float = 1e-3,
    init: Any = None,
    width: int | None = None,
    watch: Watch | None = None,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> Trajectory:
    """Minimise the loss within growing radii, each from the solution before.

    As the radius grows, ``W̄(R)/R`` tends to the direction of the SVM in the same norm (paper A,
    Theorem 2; paper B, Theorem 1), with "KQ" in the nuclear norm.

    Args:
        radii: growing, positive.
        parameter: "W" with any p, or "KQ" (p = 2).
        selection: tokens ``(*B, n)`` for the local path of paper A, Theorem 9: the loss is
            minimised over the cone of Definition 3, from ``init`` inside it.
        cone: ε of that cone.
        init: where to start; the direction counts. By default down the gradient at zero for W,
            and random for K and Q.

    The loss is not convex: at every radius the better one of two local minima is taken, that from
    the solution before, and that from data with equal scores of all tokens but the optimal ones,
    where all descent leads to the global minimum (paper A, Theorem 4).

    Returns:
        A :class:`Trajectory`; ``steps`` are the radii.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 5, name="regularization")
        >>> path = am.regularization_path(data, [1.0, 10.0, 100.0, 1000.0])
        >>> solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
        >>> off = am.misalignment(path.W, solution.W.expand(4, 5, 5))
        >>> bool((off.diff() < 0).all()), bool(off[-1] < 1e-3)
        (True, True)
    """
    _check(radii, parameter, p)
    if selection is not None and init is None:
        raise InputError("init", "nothing", "a start in the cone of the selection, such as its SVM")
    goal = objective(data, "linear", loss)
    tokens = None if selection is None else _tokens(selection, goal.flat)
    start = (parameter, float(p), init, width, seed)
    sphere = _Sphere(goal, *start, tokens, cone)
    guide = None if tokens is not None else _Sphere(_guiding(goal), *start, None, cone)
    rows = Recorder(goal.flat, watch)
    for k, radius in enumerate(radii):
        sphere.descend(float(radius), guide)
        rows.add(float(radius), sphere.weights, goal.slope(sphere.weights.logits()))
        if progress is not None:
            progress(k + 1, len(radii))
    return rows.trajectory(sphere.weights.parts(), precision_notes(data))


def _check(radii: Sequence[float], parameter: str, p: float) -> None:
    if parameter not in ("W", "KQ"):
        raise InputError("parameter", repr(parameter), "'W' or 'KQ'")
    if not 1.0 < p < math.inf or (parameter == "KQ" and p != 2.0):
        raise InputError("p", f"{p:g} for {parameter}", "1 < p < ∞ for W, and 2 for KQ")
    numbers = [float(r) for r in radii]
    growing = all(a < b for a, b in pairwise(numbers))
    if not numbers or not growing or not numbers[0] > 0.0 or not numbers[-1] < math.inf:
        raise InputError("radii", f"{numbers[:4]}", "positive numbers that grow")


def _tokens(selection: Array, flat: Sequences) -> Tensor:
    """One token per sequence, ``(B, N)``."""
    tokens = integers("selection", selection, flat.X)
    full = (*flat.batch, *flat.queries)
    if tokens.shape not in (full, torch.Size(flat.queries)):
        raise InputError("selection", f"shape {tuple(tokens.shape)}", f"{tuple(full)}")
    return tokens.expand(full).reshape(len(flat.X), -1)


def _guiding(goal: Objective) -> Objective:
    """The same data with equal scores of all tokens but the optimal ones (Assumption B.2).

    Its loss has no local minima (paper A, Theorem 3), and the same path at the end: a start from
    which the minimum of the true loss is the global one once the radius is large.
    """
    assert goal.gamma is not None
    gamma, hidden = goal.gamma, goal.flat.hidden
    visible = gamma if hidden is None else gamma.masked_fill(hidden, -torch.inf)
    best = visible.argmax(-1, keepdim=True)
    return Objective(goal.flat, None, Linear(), torch.zeros_like(gamma).scatter(-1, best, 1.0))


def in_cone(objective: Objective, logits: Tensor, tokens: Tensor, least: Tensor) -> Tensor:
    """Whether W is in the cone of paper A, Definition 3, bool ``(B,)``; least is ``ε‖W‖_F``.

    In every sequence some token of lower score than the chosen one has a logit above those of all
    tokens of higher or equal score.
    """
    assert objective.gamma is not None
    own = tokens.unsqueeze(-1)
    chosen = objective.gamma.gather(-1, own)
    low = objective.gamma < chosen
    high = (~low).scatter(-1, own, False)
    if objective.flat.hidden is not None:
        low, high = low & ~objective.flat.hidden, high & ~objective.flat.hidden
    barrier = logits.where(low, -torch.inf).amax(-1)
    above = logits.where(high, -torch.inf).amax(-1)
    return ((barrier - above >= least.unsqueeze(-1)) | ~high.any(-1)).all(-1)


class _Sphere:
    """Weights on the sphere of radius R for a free V ``(B, k)``, and their log-loss.

    They are ``R V / ‖V‖_p``. For p < 2, where many entries of W are near zero and the norm bends
    sharply, V lives in the dual: the weights are ``R ∇ψ_q(V) / ‖·‖_p`` with ``1/p + 1/q = 1``.
    """

    def __init__(
        self,
        goal: Objective,
        parameter: str,
        p: float,
        init: Any,
        width: int | None,
        seed: int,
        tokens: Tensor | None,
        cone: float,
    ) -> None:
        self.goal, self.flat, self.p = goal, goal.flat, p
        self.power = p / (p - 1.0) if p < 2.0 else p
        self.tokens, self.cone, self.radius = tokens, cone, 1.0
        self.weights: Entries | Factors
        if parameter == "KQ":
            self.weights = factor_start(self.flat, init, width, seed)
            self.V = torch.cat([part.flatten(1) for part in self.weights.parts()], -1)
            other = factor_start(self.flat, None, self.weights.K.shape[-1], seed + 1).parts()
            noise = torch.cat([part.flatten(1) for part in other], -1)
            self.noise = noise / noise.norm(dim=-1, keepdim=True)
            return
        start = matrix_start(self.flat, init, plain=False)
        assert isinstance(start, Entries)
        self.weights = start
        if init is None:
            slope = goal.slope(start.logits())
            start.W = keys(self.flat, slope.c).mT @ self.flat.z
        self.V = inverse_mirror(start.W, self.power).flatten(1) if p < 2.0 else start.W.flatten(1)

    def descend(self, radius: float, guide: "_Sphere | None" = None) -> None:
        """Move the weights to the minimum on the sphere of a radius.

        With a guide, its minimum is a second start, and the better end counts.
        """
        self.radius = math.sqrt(2.0 * radius) if isinstance(self.weights, Factors) else radius
        ends = [self._minimum(self.V)]
        if guide is not None:
            guide.descend(radius)
            ends.append(self._minimum(guide.V))
        values = torch.stack([self._value(V)[0] for V in ends])
        best = values.argmin(0)
        self.V = torch.stack(ends)[best, torch.arange(len(best), device=best.device)]
        self._place(self.V)

    def _point(self, unit: Tensor) -> Tensor:
        """The point of the unit sphere in ‖·‖_p that belongs to a unit V."""
        return mirror(unit, self.power) if self.p < 2.0 else unit

    def _chain(self, g: Tensor, V: Tensor) -> Tensor:
        """Gradient in V from that in the weights."""
        size = self._norm(V)
        unit = V / size
        if self.p < 2.0:
            g = g * (self.power - 1.0) * unit.abs() ** (self.power - 2.0)
        outward = mirror(unit, self.power)  # ∇‖V‖
        return self.radius / size * (g - (g * unit).sum(-1, keepdim=True) * outward)

    def _minimum(self, V: Tensor) -> Tensor:
        function: Function = self._value
        tolerance = _TOLERANCE * (1.0 + 0.1 * self.radius)
        unit = V / self._norm(V)
        if isinstance(self.weights, Factors):
            # Factors of low rank stay of low rank: a little of everything lets the rank grow.
            unit = unit + _STIR * self.noise
        return minimise(function, unit, _ITERATIONS, tolerance)

    def _norm(self, V: Tensor) -> Tensor:
        return power_norm(V.unsqueeze(-1), self.power)[..., 0].clamp_min(_TINY)

    def _place(self, V: Tensor) -> None:
        """Set the weights to the point of the sphere."""
        x = self.radius * self._point(V / self._norm(V))
        if isinstance(self.weights, Factors):
            shape = self.weights.K.shape
            self.weights.K, self.weights.Q = (part.reshape(shape) for part in x.chunk(2, -1))
        else:
            self.weights.W = x.reshape(self.weights.W.shape)

    def _pulls(self, slope: Slope) -> Tensor:
        """Negative gradient in the weights over ``e^{log_scale}``, ``(B, k)``."""
        if isinstance(self.weights, Factors):
            return torch.cat([part.flatten(1) for part in self.weights.directions(slope)], -1)
        return (keys(self.flat, slope.c).mT @ self.flat.z).flatten(1)

    def _value(self, V: Tensor) -> tuple[Tensor, Tensor]:
        """``log(L − L⋆)`` and its gradient in V; infinite outside of the cone."""
        self._place(V)
        logits = self.weights.logits()
        slope = self.goal.slope(logits)
        above = excess(self.goal, slope, self.tokens)[:, 0]
        value = (slope.log_scale[:, 0] + above.clamp_min(0.0).log())[:, 0]
        g = -self._pulls(slope) / above.where(above > 0, 1.0)
        g = self._chain(g, V)
        allowed = above[:, 0] > 0
        if self.tokens is not None:
            least = self.cone * power_norm(self.weights.matrix(), 2.0)[:, 0, 0]
            allowed = allowed & in_cone(self.goal, logits, self.tokens, least)
        return value.where(allowed, torch.inf), g
