"""The least loss within a ball, where the least on its sphere may be larger.

If no weights select every optimal token, the loss can rise outwards, and has several minima, inside
of the ball and on its sphere. Then many starts descend, and every ball keeps what was found in the
smaller ones.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.base.seeds import seed_of
from attnmargin.margin.norms import mirror, power_norm
from attnmargin.training.regularization.descent import Function, minimise
from attnmargin.training.regularization.landscape import Landscape

# New starts per radius, from the least number to the largest, which data of few numbers have; and
# end points that start again at the next radius.
_STARTS, _NUMBERS, _KEPT = (32, 128), 2**13, 8
# Descents until nothing is gained, and the steps and tolerances of the first and the last ones.
_ROUNDS, _STEPS, _TOLERANCE = 4, 150, 1e-6
_LAST_STEPS, _LAST_TOLERANCE = 1000, 1e-10
# A point this close to the sphere, relative to the radius, lies on it.
_ON = 1e-9
# A larger cosine between gradient and point means that the loss rises outwards.
_RISES = 1e-9
# A larger share of the gradient along the sphere means that the descent on it has stuck.
_ALONG = 1e-4
# Unless it is too small to change the value.
_LITTLE = 1e-5
# A loss that falls by less between the centre and a point, relative to its size, is nearly level.
_LEVEL = 1e-5
# A smaller gain of log(L − L⋆), relative to its size and to what is gained from the centre, is what
# a descent leaves.
_GAIN = 1e-9
# Smallest entry of V at a start, as a share of the largest.
_OFF = 1e-2
# Numbers of tokens that are held at once.
_ELEMENTS = 2**24


def lengths(x: Tensor, parts: tuple[int, ...], p: float) -> Tensor:
    """Compute the norms of the parts of x ``(B, k)``, ``(B, parts)``."""
    sizes = [power_norm(part.unsqueeze(-1), p)[:, 0, 0] for part in x.split(parts, -1)]
    return torch.stack(sizes, -1)


def inside(x: Tensor, parts: tuple[int, ...], p: float, radius: float) -> Tensor:
    """Check whether a part of x lies inside of its ball and not on the sphere, bool ``(B,)``."""
    doubt = _ON + 64.0 * torch.finfo(x.dtype).eps
    return (lengths(x, parts, p) < radius * (1.0 - doubt)).any(-1)


def clip(x: Tensor, parts: tuple[int, ...], p: float, radius: float) -> Tensor:
    """Scale the parts of x that lie outside of the ball to its sphere."""
    sizes = lengths(x, parts, p).clamp_min(tiny(x)).unbind(-1)
    pairs = zip(x.split(parts, -1), sizes, strict=True)
    return torch.cat(
        [part * (radius / size).clamp_max(1.0).unsqueeze(-1) for part, size in pairs], -1
    )


def _along(g: Tensor, x: Tensor, p: float, radius: float) -> Tensor:
    """Compute the gradient at x of a function of the clipped x.

    On the sphere, where that function has two gradients, take the one along the sphere if the
    function falls outwards.
    """
    size = power_norm(x.unsqueeze(-1), p)[..., 0].clamp_min(tiny(x))
    unit = x / size
    radial = (g * unit).sum(-1, keepdim=True)
    tangent = (g - radial * mirror(unit, p)) * (radius / size).clamp_max(1.0)
    on = size >= radius * (1.0 - 1e-12)
    outside = size > radius * (1.0 + 1e-12)
    return torch.where(outside | (on & (radial < 0)), tangent, g)


def _walled(landscape: Landscape, p: float, radius: float) -> Function:
    """Build the function ``landscape(clip(x))``."""
    parts = landscape.parts

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        value, g = landscape.at(clip(x, parts, p, radius))
        pairs = zip(g.split(parts, -1), x.split(parts, -1), strict=True)
        return value, torch.cat([_along(*pair, p, radius) for pair in pairs], -1)

    return function


def _rounded(landscape: Landscape, p: float, radius: float) -> Function:
    """Build the same function of V, ``x = sign(V) |V|^{2/p}``: there, the ball of ℓp is round."""
    parts, bound = landscape.parts, radius ** (p / 2.0)

    def function(V: Tensor) -> tuple[Tensor, Tensor]:
        inner = clip(V, parts, 2.0, bound)
        value, g = landscape.at(_power(inner, 2.0 / p))
        g = g * (2.0 / p) * inner.abs() ** (2.0 / p - 1.0)
        pairs = zip(g.split(parts, -1), V.split(parts, -1), strict=True)
        return value, torch.cat([_along(*pair, 2.0, bound) for pair in pairs], -1)

    return function


def _power(x: Tensor, power: float) -> Tensor:
    return x.sign() * x.abs() ** power


def _round(
    landscape: Landscape, x: Tensor, p: float, radius: float, steps: int, tolerance: Tensor
) -> Tensor:
    """Descend once in the ball; for p < 2, whose sphere bends sharply, in V as well."""

    def minimum(build: Callable[[Landscape, float, float], Function], start: Tensor) -> Tensor:
        def part(rows: Tensor) -> Function:
            return build(landscape.take(rows), p, radius)

        return minimise(build(landscape, p, radius), start, steps, tolerance, part)

    x = minimum(_walled, x)
    x = clip(x, landscape.parts, p, radius)
    if p >= 2.0:
        return x
    # An entry of V near zero has hardly any gradient, so it starts a little off.
    V = _power(x, p / 2.0)
    least = _OFF * V.abs().amax(-1, keepdim=True)
    V = torch.where(V.abs() < least, least.copysign(V), V)
    V = minimum(_rounded, V)
    other = clip(_power(V, 2.0 / p), landscape.parts, p, radius)
    better = landscape.at(other)[0] < landscape.at(x)[0]
    return other.where(better.unsqueeze(-1), x)


def _descend(
    landscape: Landscape, x: Tensor, p: float, radius: float, steps: int, tolerance: Tensor
) -> tuple[Tensor, Tensor]:
    """Descend in the ball from x ``(B, k)``; return the points and their values.

    Outside of the sphere the clipped function does not feel that the loss may fall inwards, so
    every round starts from the sphere again.
    """
    x = clip(x, landscape.parts, p, radius)
    value = landscape.at(x)[0]
    for _ in range(_ROUNDS):
        new = _round(landscape, x, p, radius, steps, tolerance)
        new_value = landscape.at(new)[0]
        better = new_value < value
        gain = (value - new_value).where(better & torch.isfinite(value), 0.0)
        x, value = new.where(better.unsqueeze(-1), x), new_value.where(better, value)
        if not bool((gain > tolerance).any()):
            break
    return x, value


def _descend_all(
    landscape: Landscape, x: Tensor, p: float, radius: float, last: bool = False
) -> tuple[Tensor, Tensor]:
    """Descend from several starts ``(B, m, k)`` per trial; return points and values ``(B, m)``."""
    B, m, k = x.shape
    owner = torch.arange(B, device=x.device).repeat_interleave(m)
    steps, tolerance = (_LAST_STEPS, _LAST_TOLERANCE) if last else (_STEPS, _TOLERANCE)
    # Where little is gained, valleys differ by less, and descents go on for longer.
    least = tolerance * _gained(landscape, clip(x[:, 0], landscape.parts, p, radius))[owner]
    size = max(1, _ELEMENTS // landscape.goal.flat.X[0].numel())
    chunks = zip(owner.split(size), x.reshape(-1, k).split(size), least.split(size), strict=True)
    ends = [_descend(landscape.take(rows), own, p, radius, steps, low) for rows, own, low in chunks]
    points, values = (torch.cat(part) for part in zip(*ends, strict=True))
    return points.reshape(B, m, k), values.reshape(B, m)


def _gained(landscape: Landscape, x: Tensor) -> Tensor:
    """Compute how much x ``(B, k)`` is below the centre, from ``_LEVEL²`` to one, ``(B,)``."""
    gained = landscape.at(torch.zeros_like(x))[0] - landscape.at(x)[0]
    return gained.nan_to_num(nan=1.0).clamp(_LEVEL * _LEVEL, 1.0)


def _unfinished(g: Tensor, x: Tensor, p: float, radius: float) -> Tensor:
    """Check whether a function with the gradient g falls inwards or along the sphere, ``(B,)``."""
    size, length = (torch.linalg.vector_norm(part, dim=-1) for part in (g, x))
    rises = (g * x).sum(-1) > _RISES * size * length
    along = torch.linalg.vector_norm(_along(g, x, p, radius), dim=-1)
    return rises | ((along > _ALONG * size) & (along * length > _LITTLE))


def _uncertain(landscape: Landscape, p: float, radii: list[float], points: list[Tensor]) -> Tensor:
    """Find the balls whose least loss may be less than at these points, bool ``(R, B)``.

    The loss falls inwards or along the sphere, or is larger than on a smaller sphere, or other
    minima are possible. If the last point proves that the loss can fall to its infimum, other
    minima are rare, and are searched only in small data. A loss that is nearly level there proves
    nothing.
    """
    found, before = [], None
    small = landscape.goal.flat.X.shape[1:].numel() <= _NUMBERS // _STARTS[1]
    unproved = ~landscape.proved(points[-1])
    centre = landscape.at(torch.zeros_like(points[0]))[0]
    for x, radius in zip(points, radii, strict=True):
        own = ~landscape.proved(x) if small else unproved.clone()
        value, g = landscape.at(x)
        own |= centre - value < _LEVEL * (1.0 + value.abs())
        for pair in zip(g.split(landscape.parts, -1), x.split(landscape.parts, -1), strict=True):
            own |= _unfinished(*pair, p, radius)
        if before is not None:
            own |= value - before > landscape.doubt(x)
        found.append(own)
        before = value
    return torch.stack(found)


def _scaled(x: Tensor, parts: tuple[int, ...], p: float, size: float) -> Tensor:
    """Scale the parts of x ``(B, k)`` to a size; a part that is zero remains so."""
    sizes = lengths(x, parts, p).clamp_min(tiny(x)).split(1, -1)
    return torch.cat([size * a / b for a, b in zip(x.split(parts, -1), sizes, strict=True)], -1)


def _fresh(landscape: Landscape, p: float, radius: float, generator: torch.Generator) -> Tensor:
    """Draw starts ``(B, m, k)``.

    A quarter of them has logits of ordinary size, half is as large as the ball, and a quarter goes
    down the gradient by that length: what descends in small steps does not find every minimum.
    """
    few, many = _STARTS
    count = max(few, min(many, _NUMBERS // landscape.goal.flat.X[0].numel()))
    x, parts = landscape.starts(count, generator), landscape.parts
    shares = torch.linspace(0.1, 1.0, count).tolist()
    for k in range(count):
        start, size = clip(x[:, k], parts, p, radius), shares[k] * radius
        if k % 8 in (2, 3, 4, 5):
            x[:, k] = _scaled(start, parts, p, size)
        elif k % 8 in (6, 7):
            x[:, k] = start - _scaled(landscape.at(start)[1], parts, p, size)
    return x


def _least(
    landscape: Landscape, x: Tensor, p: float, radius: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Search a ball from x ``(B, m, k)`` and from new starts; return the ``_KEPT`` best ends.

    The first of them descends to the end; its values are returned too.
    """
    starts = torch.cat((x, _fresh(landscape, p, radius, generator)), 1)
    ends, values = _descend_all(landscape, starts, p, radius)
    order = values.argsort(dim=-1, stable=True)[:, :_KEPT]
    ends = ends[torch.arange(len(x), device=x.device).unsqueeze(-1), order]
    best, value = _descend_all(landscape, ends[:, :1], p, radius, last=True)
    return torch.cat((best, ends[:, 1:]), 1), value[:, 0]


def lower(
    landscape: Landscape, p: float, radii: list[float], points: list[Tensor], seed: int
) -> list[Tensor]:
    """Replace points ``(B, k)`` of least loss on spheres by those of least loss in the balls.

    A point is replaced only where the value falls by more than the descents leave, or where the
    loss would rise from the ball before, by more than rounding.
    """
    asked = _uncertain(landscape, p, radii, points)
    if not bool(asked.any()):
        return points
    found = [points[0]]
    kept = points[0].unsqueeze(1).repeat(1, _KEPT, 1)
    for k, (radius, own) in enumerate(zip(radii, points, strict=True)):
        old, doubt = landscape.at(own)[0], landscape.doubt(own)
        rises = landscape.at(found[-1])[0] < old - doubt
        left = _GAIN * (1.0 + old.abs()) * _gained(landscape, own)
        gain = torch.where(rises, doubt, doubt + left)
        rows = (asked[k] | rises).nonzero()[:, 0]
        new = own
        if len(rows) > 0:
            generator = torch.Generator().manual_seed(seed_of("ball", k, base=seed))
            part = landscape.take(rows)
            x = torch.cat((torch.stack((own, found[-1]), 1), kept), 1)[rows]
            ends, value = _least(part, x, p, radius, generator)
            better = (value < (old - gain)[rows]).unsqueeze(-1)
            best = part.shortest(ends[:, 0].where(better, own[rows]))
            kept, new = kept.index_copy(0, rows, ends), own.index_copy(0, rows, best)
        found.append(new)
    return found[1:]
