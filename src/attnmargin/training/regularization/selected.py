"""Joint minima by selection: every selection with a head that separates it has one.

Once the softmax saturates, ``log L`` of head and weights is about −r Γ, with the label margin Γ of
what W selects (paper B, Section 3.2). So descents start from the selections of largest Γ.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from attnmargin.attention.losses import Log
from attnmargin.attention.softmax import Objective
from attnmargin.training.regularization.joint import JointSphere
from attnmargin.training.regularization.landscape import JointLandscape, mean_loss
from attnmargin.training.regularization.sphere import Ball, Sphere

# Data with at most so many selections have all of them ranked; others, swaps of single tokens.
_ALL, _SWAPS = 1024, 20
# Selections that are tried, per trial.
_TRIED = 2
# Factor by which heads grow.
_GROWTH = 2.0


def by_selections(
    landscape: JointLandscape, p: float, radii: list[float], points: list[Tensor]
) -> list[Tensor]:
    """Descend from the selections of largest label margin, too; keep the least ``log L``.

    Args:
        landscape: of head and weights.
        p: of both balls.
        radii: of both balls.
        points: what was found before, ``(B, k)`` per radius.
    """
    found = list(points)
    for chosen in _ranked(landscape.goal, p, radii[-1]):
        guide = _guide(landscape.goal, chosen, p)
        for k, radius in enumerate(radii):
            guide.descend(radius)
            x = _from(landscape, p, radius, chosen, guide.weights.matrix())
            better = landscape.at(x)[0] < landscape.at(found[k])[0]
            found[k] = x.where(better.unsqueeze(-1), found[k])
    return found


def _guide(goal: Objective, chosen: Tensor, p: float) -> Sphere:
    """Build the convex problem ``−Σ log s`` of chosen tokens ``(B, N)``."""
    wanted = one_hot(chosen, goal.flat.X.shape[-2]).to(goal.flat.X)
    return Sphere(Objective(goal.flat, None, Log(), wanted), "W", p, None, None, 0)


def _from(landscape: JointLandscape, p: float, radius: float, chosen: Tensor, W: Tensor) -> Tensor:
    """Descend on both spheres from the weights W and the best head of chosen tokens."""
    own = landscape.take(torch.arange(len(W), device=W.device))
    v = _heads(own.goal, p, radius, chosen.unsqueeze(0))[1][0]
    joint = JointSphere(own.goal, p, (v, W))
    joint.sphere.radius = radius  # the start has grown to it already
    joint.descend(radius, radius)
    return torch.cat((joint.v, joint.sphere.weights.vector()), -1)


def _ranked(goal: Objective, p: float, radius: float) -> Tensor:
    """Find the selections with the least loss of their best heads, int ``(K, B, N)``."""
    B, N, T, _ = goal.flat.X.shape
    if T**N <= _ALL:
        every = torch.cartesian_prod(*[torch.arange(T, device=goal.flat.X.device)] * N)
        chosen = every.reshape(-1, 1, N).expand(-1, B, -1)
        return _least(chosen, _heads(goal, p, radius, chosen)[0])
    ranked = goal.flat.unseen().to(torch.int8).argmin(-1).unsqueeze(0)  # the first that is seen
    for _ in range(_SWAPS):
        near = torch.cat((ranked[:1], _swaps(ranked[0], T)))
        before, ranked = ranked[0], _least(near, _heads(goal, p, radius, near)[0])
        if torch.equal(ranked[0], before):
            break
    return ranked


def _swaps(chosen: Tensor, T: int) -> Tensor:
    """Change one token of a selection ``(B, N)`` at a time, ``(N (T − 1), B, N)``."""
    found = []
    for i in range(chosen.shape[-1]):
        for step in range(1, T):
            other = chosen.clone()
            other[:, i] = (other[:, i] + step) % T
            found.append(other)
    return torch.stack(found)


def _least(chosen: Tensor, loss: Tensor) -> Tensor:
    """Take the selections of least loss ``(C, B)``, ``(K, B, N)``."""
    order = loss.argsort(0)[:_TRIED]
    return chosen.gather(0, order.unsqueeze(-1).expand(*order.shape, chosen.shape[-1]))


def _heads(goal: Objective, p: float, radius: float, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Minimise ``log L`` over heads on the sphere, with all attention on chosen tokens.

    Args:
        chosen: int ``(C, B, N)``.

    Returns:
        The values ``(C, B)``, infinite where a token is hidden, and the heads ``(C, B, d)``.
    """
    flat, ball = goal.flat, Ball(p)
    assert flat.y is not None
    C, B, N = chosen.shape
    index = chosen[..., None, None].expand(C, B, N, 1, flat.X.shape[-1])
    own = flat.X.expand(C, *flat.X.shape).gather(-2, index)[..., 0, :]
    pulled = (flat.y.unsqueeze(-1) * own).flatten(0, 1)

    def value(V: Tensor, size: float) -> tuple[Tensor, Tensor]:
        v = size * ball.point(V)
        least, weight = mean_loss(goal.loss, (pulled @ v.unsqueeze(-1)).squeeze(-1))
        g = -(weight.unsqueeze(-1) * pulled).sum(-2)
        return least, size * ball.chain(g, V)

    # Far out the loss has sharp edges: a head that has grown is already near them.
    V, size = ball.free(pulled.sum(-2)), min(radius, 1.0)
    while size < radius:
        V = ball.minimum(partial(value, size=size), V, size)
        size *= _GROWTH
    V = ball.minimum(partial(value, size=radius), V, radius)
    loss = value(V, radius)[0].reshape(C, B)
    if flat.hidden is not None:
        unseen = flat.hidden.expand(C, *flat.hidden.shape).gather(-1, chosen.unsqueeze(-1))
        loss = loss.masked_fill(unseen[..., 0].any(-1), torch.inf)
    return loss, (radius * ball.point(V)).reshape(C, B, -1)
