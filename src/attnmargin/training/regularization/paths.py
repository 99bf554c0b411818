"""Regularisation paths: the weights of least loss within a growing radius.

    W̄(R) = argmin L(W)  subject to  ‖W‖_p ≤ R          (paper A, W-RP; paper B, ℓp-AttRP)
    argmin L(K Qᵀ)      subject to  ‖K‖² + ‖Q‖² ≤ 2R    (paper A, KQ-RP)
    argmin L(v, W)      subject to  ‖W‖_p ≤ R, ‖v‖_p ≤ r  (paper B, ℓp-JointRP)

If some W selects every optimal token, the loss falls to its infimum along it, and the minimum lies
on the sphere. The method minimises ``log(L − L⋆)`` there, whose value and gradient do not
underflow. Each radius starts from the solution of the one before. Other trials are searched inside
of the ball as well.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from attnmargin.attention.heads import HeadLike
from attnmargin.attention.losses import Log, Loss
from attnmargin.attention.selection import selected_tokens
from attnmargin.attention.softmax import Objective, Sequences, objective
from attnmargin.base.arrays import Array, as_tensor
from attnmargin.base.checks import check_kind
from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.implied import check_parameter
from attnmargin.training.loop import precision_notes, with_head
from attnmargin.training.regularization.interior import inside, lower
from attnmargin.training.regularization.joint import JointSphere, settled
from attnmargin.training.regularization.landscape import JointLandscape, Landscape, best_tokens
from attnmargin.training.regularization.selected import by_selections
from attnmargin.training.regularization.sphere import Sphere
from attnmargin.training.start import joint_start
from attnmargin.training.trajectory import Recorder, Trajectory, Watch


@one_thread
def regularization_path(
    data: AttentionData,
    radii: Sequence[float],
    parameter: str = "W",
    p: float = 2.0,
    loss: str | Loss = "logistic",
    *,
    head: HeadLike = "linear",
    selection: Array | None = None,
    cone: float = 1e-3,
    init: Any = None,
    width: int | None = None,
    search: bool = True,
    watch: Watch | None = None,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> Trajectory:
    """Minimise the loss within growing radii, each started from the solution before.

    As the radius grows, ``W̄(R)/R`` tends to the direction of the SVM in the same norm (paper A,
    Theorem 2; paper B, Theorem 1), with "KQ" in the nuclear norm.

    Args:
        radii: positive and increasing.
        parameter: "W" with any p; "KQ" (p = 2); or "vW" with any p, where W and v have the same
            radius and are minimised in turn until both settle.
        head: the linear head, or a :class:`attnmargin.heads.ScoreHead` (paper C, Algo-RP). For
            next-token data with cycles, the least loss is above that of the labels. If nothing is
            left to retrieve, the minimum lies inside of the ball. Beyond about 35 ‖W_mm‖, the
            contribution of retrieval to the loss is below rounding.
        selection: tokens ``(*B, n)`` for the local path of paper A, Theorem 9: minimise the loss
            over the cone of Definition 3, from ``init`` inside it.
        cone: ε of that cone.
        init: start, of which only the direction counts. By default the negative gradient at zero
            for W and v, and random for K and Q.
        search: whether to search the balls from many starts where other minima are possible.

    The loss is not convex. At every radius the path takes the better of two local minima: one
    started from the solution before, one from the minimum of ``−Σ log s_i,opt``, which is convex
    in W. Where the last W does not select every optimal token (in small data, any W), and for
    every joint path, it takes the best of many starts in the ball and of the points found in
    smaller balls. A joint path also starts from the selections of largest label margin: all of them
    in small data, swaps of single tokens in large ones. So the loss never rises with the radius,
    except by rounding.

    Returns:
        A :class:`Trajectory`; ``steps`` are the radii, and ``inside`` ``(R, *B)`` says where the
        least loss lies inside of the ball, with "vW" of one of the two balls.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 5, name="regularization")
        >>> path = am.regularization_path(data, [1.0, 10.0, 100.0, 1000.0])
        >>> solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
        >>> off = am.measures.misalignment(path.W, solution.W.expand(4, 5, 5))
        >>> bool((off.diff() < 0).all()), bool(off[-1] < 1e-3)
        (True, True)
    """
    check_kind("data", data, AttentionData)
    radii = _check(radii, parameter, p)
    if selection is not None and (init is None or parameter == "vW"):
        needs = "'W' or 'KQ', and a start in the cone of the selection, such as its SVM"
        raise InputError("init", "nothing" if init is None else "a joint path", needs)
    goal = objective(with_head(data, parameter), head, loss)
    if goal.gamma is None:
        raise InputError("head", f"a {type(head).__name__}", "a linear head, or a ScoreHead")
    walk, landscape = _walk(goal, parameter, float(p), init, width, seed, selection, cone)
    points = []
    for k, radius in enumerate(radii):
        points.append(walk(radius))
        if progress is not None:
            progress(k + 1, len(radii))
    bounds = [math.sqrt(2.0 * radius) if parameter == "KQ" else radius for radius in radii]
    if isinstance(landscape, JointLandscape):
        points = by_selections(landscape, float(p), bounds, points)
    found = lower(landscape, float(p), bounds, points, seed) if search else points
    if isinstance(landscape, JointLandscape):
        found = settled(landscape, float(p), bounds, points, found)
    within = [inside(x, landscape.parts, float(p), R) for x, R in zip(found, bounds, strict=True)]
    notes = (*precision_notes(data), *_inside_notes(within, radii))
    return replace(
        _recorded(landscape, radii, found, watch),
        inside=torch.stack(within).reshape(len(radii), *goal.flat.batch),
        notes=notes,
    )


def _recorded(
    landscape: Landscape, radii: list[float], points: list[Tensor], watch: Watch | None
) -> Trajectory:
    """Record the weights, and the head if it is trained, at every radius."""
    goal, weights = landscape.goal, landscape.weights
    rows = Recorder(goal.flat, watch)
    for radius, x in zip(radii, points, strict=True):
        landscape.at(x)  # places the weights and the head
        v = x[:, : landscape.parts[0], None] if len(landscape.parts) > 1 else None
        rows.add(radius, weights, goal.slope(weights.logits()), v)
    return rows.trajectory(weights.parts() if v is None else (v[..., 0], *weights.parts()))


def _inside_notes(within: list[Tensor], radii: list[float]) -> tuple[str, ...]:
    """Write a note if the least loss lies inside of the last ball."""
    count = int(within[-1].sum())
    if count == 0:
        return ()
    words = f"at radius {radii[-1]:g} the least loss of {count} of {len(within[-1])} trials"
    return (f"{words} lies inside of the ball: outwards it rises, or falls by less than rounding.",)


Walk = Callable[[float], Tensor]


def _walk(
    goal: Objective,
    parameter: str,
    p: float,
    init: Any,
    width: int | None,
    seed: int,
    selection: Array | None,
    cone: float,
) -> tuple[Walk, Landscape]:
    """Build the function that finds the minimum ``(B, k)`` on a sphere, and the loss there."""
    if parameter == "vW":
        head, start = joint_start(goal.flat, init)
        joint = JointSphere(goal, p, None if init is None else (head[..., 0], start.W))

        def together(radius: float) -> Tensor:
            joint.descend(radius, radius)
            return torch.cat((joint.v, joint.sphere.weights.vector()), -1)

        return together, JointLandscape(goal, joint.sphere.weights.matrix())
    tokens = None if selection is None else _tokens(selection, goal.flat)
    sphere = Sphere(goal, parameter, p, init, width, seed, tokens, cone)
    guide = None
    if tokens is None:
        guide = Sphere(_guiding(goal), parameter, p, init, width, seed)

    def alone(radius: float) -> Tensor:
        sphere.descend(radius, guide)
        return sphere.weights.vector().clone()

    return alone, sphere.landscape


def _check(radii: Sequence[float], parameter: str, p: float) -> list[float]:
    """Check the arguments; return the radii as a list."""
    check_parameter(parameter)
    if not isinstance(p, int | float) or not 1.0 < p < math.inf or (parameter == "KQ" and p != 2.0):
        raise InputError("p", f"{p} for {parameter}", "1 < p < ∞ for W and vW, and 2 for KQ")
    numbers = as_tensor("radii", list(radii)).to(torch.float64).flatten().tolist()
    growing = all(a < b for a, b in pairwise(numbers))
    if not numbers or not growing or not numbers[0] > 0.0 or not numbers[-1] < math.inf:
        raise InputError("radii", f"{numbers[:4]}", "positive numbers that grow")
    return numbers


def _tokens(selection: Array, flat: Sequences) -> Tensor:
    """Convert the selection to one token per sequence, ``(B, N)``."""
    T = flat.X.shape[-2]
    tokens = selected_tokens(selection, flat.X, flat.queries, T, flat.batch)
    return tokens.reshape(len(flat.X), -1)


def _guiding(goal: Objective) -> Objective:
    """Build the convex problem with the same limit: ``−log s`` of the optimal tokens.

    Its only minimum on a sphere is a start that leads to the global minimum of the true loss once
    the radius is large.
    """
    assert goal.gamma is not None
    return Objective(goal.flat, None, Log(), best_tokens(goal).to(goal.gamma.dtype))
