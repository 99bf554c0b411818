"""Gradient flow by arc length, with error control, at any norm of W.

Along the flow ``dW/dt = −∇L(W)`` time grows like e^{‖W‖}. By arc length s the flow is

    dW/ds = −∇L / ‖∇L‖

and only the direction of the gradient matters, which stays exact when the softmax saturates.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnmargin.attention.heads import HeadLike
from attnmargin.attention.losses import Loss
from attnmargin.attention.softmax import objective
from attnmargin.base.arrays import tiny
from attnmargin.base.checks import check_kind, check_whole
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import inverse_mirror, mirror, power_norm
from attnmargin.training.loop import precision_notes
from attnmargin.training.start import movable_start
from attnmargin.training.trajectory import Recorder, Trajectory, Watch

Field = Callable[[Tensor], Tensor]
_SHORTEST = 1e-9
# After this many steps, the net progress must be at least this share of the arc length.
_PATIENCE, _AHEAD = 100, 0.05
# More steps than this between two records mean a valley too narrow to follow.
_MOST = 20_000


def gradient_flow(
    data: AttentionData,
    length: float,
    parameter: str = "W",
    p: float = 2.0,
    loss: str | Loss = "logistic",
    head: HeadLike = "linear",
    init: Any = None,
    record: int = 10,
    *,
    tolerance: float = 1e-6,
    width: int | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> Trajectory:
    """Follow the gradient flow of the loss for a given arc length.

    Args:
        length: arc length of the path, in the norm ``‖·‖_F`` of the trained parameters.
        parameter: "W", "KQ" for the flow of both factors, or "p" for logits ``X p`` without
            queries; the path of p is ``(R, *B, d, 1)``.
        p: power of the mirror potential; for p ≠ 2, ``∇ψ(W)`` flows, with arc length in the
            dual norm.
        record: number of equal parts of the path; each end is recorded.
        tolerance: bound on the error per step, relative to ‖W‖, absolute for ‖W‖ < 1.
        init, width, watch, seed: as in :func:`attnmargin.train`.

    Returns:
        A :class:`Trajectory`; ``steps`` are arc lengths.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 6, name="flow")
        >>> run = am.gradient_flow(data, length=2000.0, record=2)
        >>> run.steps.tolist(), bool(run.log_gradient[-1] < -300)
        ([0.0, 1000.0, 2000.0], True)
    """
    check_kind("data", data, AttentionData)
    if parameter not in ("W", "KQ", "p"):
        raise InputError("parameter", repr(parameter), "'W', 'KQ' or 'p'")
    for name, value in (("length", length), ("tolerance", tolerance)):
        if not isinstance(value, int | float) or not 0.0 < value < float("inf"):
            raise InputError(name, repr(value), "a positive number")
    check_whole(record=record)
    known = isinstance(p, int | float) and 1.0 < p < float("inf")
    if not known or (parameter == "KQ" and p != 2.0):
        raise InputError("p", f"{p} for {parameter}", "1 < p < ∞ for W and p, and 2 for KQ")
    if parameter == "p":  # p has no queries; zero queries in the data would freeze the attention
        data = AttentionData(data.X, torch.ones_like(data.z), data.y, data.v, data.mask)
    goal = objective(data, head, loss)
    weights, power = movable_start(goal.flat, parameter, init, width, seed), float(p)
    x, h = mirror(weights.vector(), power), goal.flat.X.new_full((len(goal.flat.X), 1), 0.01)

    def field(x: Tensor) -> Tensor:
        """Compute the unit tangent of the path."""
        weights.place(inverse_mirror(x, power))
        D = weights.pull(goal.slope(weights.logits()))
        size = power_norm(D.unsqueeze(-1), power / (power - 1.0))[..., 0]
        return D / size.where(size > 0, 1.0)

    rows, parts = Recorder(goal.flat, watch), record
    resting = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    for part in range(parts + 1):
        weights.place(inverse_mirror(x, power))
        rows.add(length * part / parts, weights, goal.slope(weights.logits()))
        if part < parts:
            x, h, stopped = _integrate(field, x, length / parts, h, tolerance)
            resting |= stopped
    notes = precision_notes(data)
    if bool(resting.any()):
        words = f"{int(resting.sum())} of {len(x)} trials came to rest before the end of the path"
        why = "the gradient vanishes there, is not defined, or turns too fast to be followed"
        notes = (*notes, f"{words}: {why}.")
    return rows.trajectory(weights.parts(), notes)


def _integrate(
    field: Field, x: Tensor, length: float, h: Tensor, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Integrate over an arc length by the Bogacki–Shampine pair, each trial with its own steps.

    Returns the end points, the next step lengths, and which trials came to rest.
    """
    left, k1 = torch.full_like(h, length), field(x)
    resting = ~torch.isfinite(k1).all(-1, keepdim=True)
    rounds, since = 0, (x, left)
    while bool(((left > 0) & ~resting).any()):
        rounds += 1
        if rounds % _PATIENCE == 0:
            # Oscillating around a minimum uses up arc length without net progress.
            way = since[1] - left
            resting = resting | ((x - since[0]).norm(dim=-1, keepdim=True) < _AHEAD * way)
            since = (x, left)
        if rounds > _MOST:
            resting = resting | (left > 0)
            break
        step = torch.minimum(h, left)
        k2 = field(x + 0.5 * step * k1)
        k3 = field(x + 0.75 * step * k2)
        new = x + step * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = field(new)
        error = step * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
        size = error.norm(dim=-1, keepdim=True).nan_to_num(nan=torch.inf)
        allowed = tolerance * x.norm(dim=-1, keepdim=True).clamp_min(1.0)
        good = (size <= allowed) & ~resting
        resting = resting | (~good & (step <= _SHORTEST))
        x, k1 = new.where(good, x), k4.where(good, k1)
        left = torch.where(good, left - step, left).clamp_min(0.0)
        factor = (0.9 * (allowed / size.clamp_min(tiny(size))) ** (1 / 3)).clamp(0.2, 5.0)
        # A step cut short at the end is no reason to shorten the next one.
        h = torch.where(good & (step < h), h, step * factor).clamp_min(_SHORTEST)
    return x, h, resting[..., 0]
