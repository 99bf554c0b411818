"""Regularisation paths against multi-start minimisation; balls are nested, so the loss falls."""

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

import attnmargin as am
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import Group, attempt, groups, seeded
from tests.hunt.oracle_paths import Floats, Loss, least_loss, norm, on_sphere

_FAMILIES = ["gaussian", "sphere", "integers", "masks", "copies", "contradicting", "near ties"]
_STARTS = 3
# Instances of the first groups, one of each family, and of all others: the library follows the
# paths of many in the time of a few.
_SIZES = 4, 48
# Share of what the loss can fall, by which it may be above the least one.
_ABOVE = 1e-5


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per instance and radius."""
    small, large = (groups("paths", seed, _FAMILIES, most=2, size=size) for size in _SIZES)
    for k, group in enumerate(chain(islice(small, len(_FAMILIES)), large)):
        rng = seeded(seed, "radii", k)
        yield attempt(lambda group, rng=rng: _compared(group, rng), group)  # type: ignore[misc]


def _compared(group: Group, rng: np.random.Generator) -> list[Case]:
    p = float(rng.choice([2.0, 2.0, 1.5, 3.0]))
    name = str(rng.choice(["logistic", "exponential"]))
    radii = np.cumsum(rng.uniform(0.3, 3.0, 3)).tolist()
    path = am.regularization_path(group.data(), radii, "W", p, name)
    cases = []
    for k in range(len(group)):
        loss, before = Loss(group.arrays(k), name), np.inf
        for r, radius in enumerate(radii):
            w = path.W[r, k].numpy().ravel()
            drawn = rng.standard_normal((_STARTS, len(w)))
            answer, found = _judged(loss, radius, p, w, list(drawn))
            value = loss(w)[0]
            if value > before + 1e-9 * (1.0 + abs(before)):
                answer, found = Answer.WRONG, f"the loss rises from {before:.9g} to {value:.9g}"
            if abs(float(path.loss[r, k]) - value) > 1e-9 * (1.0 + value):
                answer, found = Answer.WRONG, f"loss {float(path.loss[r, k])}, by hand {value}"
            before = value
            about = f"{found} (radius {radius:.4g} of {[round(x, 4) for x in radii]}, p = {p:g}, "
            about += f"{name})"
            own = group.arrays(k) | {"radii": np.array(radii), "W": path.W[r, k].numpy()}
            cases.append(Case(answer, group.family, group.adversarial, about, own))
    return cases


def _judged(
    loss: Loss, radius: float, p: float, w: Floats, starts: list[Floats]
) -> tuple[Answer, str]:
    """Compare with the least loss found, relative to what can be gained over W = 0."""
    if not np.isfinite(w).all() or norm(w, p) > radius * (1.0 + 1e-9):
        return Answer.WRONG, f"norm {norm(w, p):.9g}"
    value, zero = loss(w)[0], loss(np.zeros_like(w))[0]
    best, where = least_loss(loss, radius, p, [*starts, w] if np.any(w) else starts)
    scale = max(zero - best, 1e-4 * zero)  # what is below 1e-9 of the loss is rounding
    if value <= best + _ABOVE * scale:
        return Answer.RIGHT, ""
    again = loss(on_sphere(loss, radius, p, w))[0] if np.any(w) else zero
    kind = "another minimum is lower" if again > value - _ABOVE * scale else "not a minimum"
    place = "inside" if norm(where, p) < radius * (1.0 - 1e-6) else "on the sphere"
    return Answer.WRONG, f"{kind}, {place}: {value:.9g}, least {best:.9g}, zero {zero:.9g}"
