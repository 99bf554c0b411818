"""The joint path of head and weights (paper B, ℓp-JointRP)."""

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.training.regularization.landscape import JointLandscape, mean_loss
from attnmargin.training.regularization.sphere import Ball, Sphere

# Alternations of head and weights per radius, and the change of direction that ends them.
_TURNS, _SETTLED = 50, 1e-12


class JointSphere:
    """Head and weights, each on the sphere of its own radius, minimised in turn."""

    def __init__(self, goal: Objective, p: float, init: tuple[Tensor, Tensor] | None) -> None:
        self.goal, self.ball, self.radius = goal, Ball(p), 1.0
        v, W = (self._first_head(), None) if init is None else init
        self.V = self.ball.free(v)
        self.goal.use_head(self.v)
        self.sphere = Sphere(goal, "W", p, W, None, 0)

    def _first_head(self) -> Tensor:
        """Start along the negative gradient at zero: the mean token times the label."""
        flat = self.goal.flat
        assert flat.y is not None
        return (flat.y.unsqueeze(-1) * flat.X.mean(-2)).sum(-2)

    @property
    def v(self) -> Tensor:
        """The head, ``(B, d)``."""
        return self.radius * self.ball.point(self.V)

    def descend(self, radius: float, head_radius: float) -> None:
        """Minimise over head and weights in turn until both directions settle."""
        self.radius = head_radius
        for _ in range(_TURNS):
            before = torch.cat((self.V / self.ball.norm(self.V), self.sphere.unit()), -1)
            self.V = self.ball.minimum(self._value, self.V, head_radius)
            self.goal.use_head(self.v)
            self.sphere.descend(radius)
            after = torch.cat((self.V / self.ball.norm(self.V), self.sphere.unit()), -1)
            if float((after - before).square().sum(-1).max()) < _SETTLED:
                break

    def _value(self, V: Tensor) -> tuple[Tensor, Tensor]:
        """Compute ``log L`` and its gradient in V, for the current weights."""
        flat, loss = self.goal.flat, self.goal.loss
        assert flat.y is not None
        v = self.radius * self.ball.point(V)
        s = torch.softmax(self.sphere.weights.logits(), -1)
        pulled = flat.y.unsqueeze(-1) * (s.unsqueeze(-2) @ flat.X).squeeze(-2)
        u = (pulled @ v.unsqueeze(-1)).squeeze(-1)
        value, weight = mean_loss(loss, u)
        g = -(weight.unsqueeze(-1) * pulled).sum(-2)
        return value, self.radius * self.ball.chain(g, V)


def settled(
    landscape: JointLandscape, p: float, radii: list[float], old: list[Tensor], new: list[Tensor]
) -> list[Tensor]:
    """Put new points ``(B, k)`` that differ from the old ones on both spheres, if these do as well.

    Where the softmax saturates, W changes log L by less than rounding; its direction is that of
    least ``log(L − L⋆)``, on the sphere.
    """
    found = []
    for radius, before, x in zip(radii, old, new, strict=True):
        rows = (before != x).any(-1).nonzero()[:, 0]
        if len(rows) > 0:
            own, part = x[rows], landscape.take(rows)
            v, W = own.split(part.parts, -1)
            joint = JointSphere(part.goal, p, (v, W.reshape(len(rows), *2 * v.shape[-1:])))
            joint.descend(radius, radius)
            end = torch.cat((joint.v, joint.sphere.weights.vector()), -1)
            good = part.at(end)[0] <= part.at(own)[0] + part.doubt(own)
            x = x.index_copy(0, rows, end.where(good.unsqueeze(-1), own))
        found.append(x)
    return found
