"""Data that lie in wait: scales, offsets, near ties, whole numbers, lines, masks, copies.

Data come in groups of one shape, so that the library solves them as a batch. The k-th group of a
seed is always the same, whatever the number of cases.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnmargin as am
from tests.hunt.answers import Answer, Arrays, Case

Floats = NDArray[np.float64]
GROUP = 8


@dataclass(frozen=True)
class Group:
    """Instances of one family and shape."""

    family: str
    adversarial: bool
    X: Floats  # (G, n, T, d)
    z: Floats  # (G, n, d)
    y: Floats  # (G, n)
    v: Floats  # (G, d)
    selection: NDArray[np.int64]  # (G, n)
    mask: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def data(self) -> am.AttentionData:
        """The instances as a batch."""
        return am.AttentionData(self.X, self.z, self.y, self.v, self.mask)

    def problem(self) -> am.MarginProblem:
        """The attention SVM of the selections."""
        return am.token_problem(self.X, self.z, self.selection, self.mask)

    def arrays(self, k: int) -> Arrays:
        """The k-th instance, to be saved."""
        own: Arrays = {name: getattr(self, name)[k] for name in ("X", "z", "y", "v", "selection")}
        return own if self.mask is None else own | {"mask": self.mask[k]}

    def visible(self, k: int) -> NDArray[np.bool_]:
        """Which tokens of the k-th instance exist, ``(n, T)``."""
        if self.mask is None:
            return np.ones(self.X.shape[1:3], dtype=bool)
        return self.mask[k]


def _signs(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.choice([-1.0, 1.0], shape)


def _gaussian(rng: np.random.Generator, G: int, n: int, T: int, d: int) -> Group:
    X, z = rng.standard_normal((G, n, T, d)), rng.standard_normal((G, n, d))
    v, y = rng.standard_normal((G, d)), _signs(rng, G, n)
    return Group("gaussian", False, X, z, y, v, rng.integers(0, T, (G, n)))


def _sphere(group: Group, rng: np.random.Generator) -> Group:
    unit = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (group.X, group.z, group.v)]
    return replace(group, X=unit[0], z=unit[1], v=unit[2])


def _integers(group: Group, rng: np.random.Generator) -> Group:
    X, z, v = (rng.integers(-2, 3, x.shape).astype(float) for x in (group.X, group.z, group.v))
    return replace(group, X=X, z=z, v=v)


def _scales(group: Group, rng: np.random.Generator) -> Group:
    G, n = group.y.shape
    of_X, of_z = 10.0 ** rng.uniform(-8, 8, (2, G, n, 1))
    return replace(group, X=group.X * of_X[..., None], z=group.z * of_z ** rng.integers(0, 2))


def _mild(group: Group, rng: np.random.Generator) -> Group:
    """Scales of 1e±2 per sequence, which training can still follow."""
    return replace(group, X=group.X * 10.0 ** rng.uniform(-2, 2, (*group.y.shape, 1, 1)))


def _offsets(group: Group, rng: np.random.Generator) -> Group:
    shift = rng.standard_normal((len(group), 1, 1, group.X.shape[-1]))
    return replace(group, X=group.X + shift * 10.0 ** rng.integers(2, 9, (len(group), 1, 1, 1)))


def _near_ties(group: Group, rng: np.random.Generator) -> Group:
    """The last token is almost, or exactly, the first one."""
    X = group.X.copy()
    power = rng.choice([-3.0, -5.0, -7.0, -9.0, -12.0, -np.inf], (*group.y.shape, 1))
    X[..., -1, :] = X[..., 0, :] + 10.0**power * rng.standard_normal(X[..., 0, :].shape)
    return replace(group, X=X)


def _collinear(group: Group, rng: np.random.Generator) -> Group:
    places = rng.integers(-3, 4, (*group.X.shape[:3], 1)).astype(float)
    direction = rng.integers(-2, 3, (*group.X.shape[:2], 1, group.X.shape[-1])).astype(float)
    return replace(group, X=places * direction)


def _masks(group: Group, rng: np.random.Generator) -> Group:
    mask = rng.random(group.X.shape[:3]) < 0.6
    np.put_along_axis(mask, group.selection[..., None], True, -1)
    return replace(group, mask=mask)


def _copies(group: Group, rng: np.random.Generator) -> Group:
    """Tokens and sequences that occur twice."""
    G, n, T, _ = group.X.shape
    index = rng.integers(0, T, (G, n, T, 1))
    X, z = np.take_along_axis(group.X, index, 2), group.z.copy()
    y, selection = group.y.copy(), group.selection.copy()
    if n > 1 and rng.random() < 0.5:
        X[:, -1], z[:, -1], y[:, -1] = X[:, 0], z[:, 0], y[:, 0]
        keep = rng.random(G) < 0.7
        selection[keep, -1] = selection[keep, 0]
    return replace(group, X=X, z=z, y=y, selection=selection)


def _contradicting(group: Group, rng: np.random.Generator) -> Group:
    """Two sequences that ask for opposite orders, but for a relative 1e-3 to 1e-6."""
    G, n = group.y.shape
    if n < 2:
        return _near_ties(group, rng)
    X, z, selection = group.X.copy(), group.z.copy(), group.selection.copy()
    power = 10.0 ** rng.integers(-6, -2, (G, 1, 1))
    X[:, 1] = -X[:, 0] + power * rng.standard_normal(X[:, 0].shape)
    z[:, 1], selection[:, 1] = z[:, 0], selection[:, 0]
    return replace(group, X=X, z=z, selection=selection)


def _mixed(group: Group, rng: np.random.Generator) -> Group:
    steps = [_integers, _scales, _offsets, _near_ties, _copies, _masks]
    for k in sorted(rng.choice(len(steps), 2, replace=False)):
        group = steps[k](group, rng)
    return group


Change = Callable[[Group, np.random.Generator], Group]
FAMILIES: dict[str, tuple[Change, bool]] = {
    "gaussian": (lambda group, rng: group, False),
    "sphere": (_sphere, False),
    "scales": (_scales, True),
    "offsets": (_offsets, True),
    "near ties": (_near_ties, True),
    "integers": (_integers, True),
    "collinear": (_collinear, True),
    "masks": (_masks, False),
    "copies": (_copies, True),
    "contradicting": (_contradicting, True),
    "mixed": (_mixed, True),
    "single": (lambda group, rng: _scales(group, rng), True),
    "mild scales": (_mild, True),
}


def seeded(seed: int, *words: Any) -> np.random.Generator:
    """Return a generator for a seed and further words."""
    return np.random.default_rng([seed, *(_number(word) for word in words)])


def _number(word: Any) -> int:
    return word if isinstance(word, int) else int.from_bytes(str(word).encode()[:8], "big")


def groups(
    area: str, seed: int, names: list[str] | None = None, most: int = 3, size: int = GROUP
) -> Iterator[Group]:
    """Yield groups without end, family after family; n, d ≤ ``most`` and T ≤ most + 1."""
    chosen = list(FAMILIES) if names is None else names
    k = 0
    while True:
        for name in chosen:
            rng = seeded(seed, area, k)
            n, T, d = (int(x) for x in rng.integers(1, [most + 1, most + 2, most + 1]))
            if name == "single":
                n, T, d = (int(x) for x in rng.integers(1, 3, 3))
            elif T == 1:
                T = 2
            change, adversarial = FAMILIES[name]
            group = change(_gaussian(rng, size, n, T, d), rng)
            yield _aimed(replace(group, family=name, adversarial=adversarial), rng)
            k += 1


def _aimed(group: Group, rng: np.random.Generator) -> Group:
    """Select the optimal tokens in half of the instances."""
    score = group.y[..., None] * np.einsum("gntd,gd->gnt", group.X, group.v)
    if group.mask is not None:
        score = np.where(group.mask, score, -np.inf)
    best = score.argmax(-1)
    if group.family == "contradicting":
        return group
    half = rng.random(len(group)) < 0.5
    return replace(group, selection=np.where(half[:, None], best, group.selection))


def attempt(work: Callable[[Group], list[Case]], group: Group) -> list[Case]:
    """Compare a group; if the library fails with an error, that is one wrong answer."""
    try:
        return work(group)
    except Exception as error:
        arrays = {name: getattr(group, name) for name in ("X", "z", "y", "v", "selection")}
        if group.mask is not None:
            arrays["mask"] = group.mask
        about = f"{type(error).__name__}: {error}"
        return [Case(Answer.WRONG, group.family, group.adversarial, about, arrays)]
