"""Lengths of names, and readable positions for them beside their points."""

from itertools import accumulate, product
from unicodedata import combining, east_asian_width

import numpy as np
from numpy.typing import NDArray

# Half size of a mark; line height and letter width, both at font size 1.
_MARK, _HEIGHT, _WIDTH = 5.0, 1.1, 0.58
_LINE = 1.5  # half the room that a line takes


def letters(name: str) -> int:
    """Count the letter widths of a name: 2 for a wide character such as 字, 0 for an accent.

    Example:
        >>> from attnmargin.plot.labels import letters
        >>> letters("word"), letters("字")
        (4, 2)
    """
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in name)


def shortened(name: str, most: int) -> str:
    """Cut a name to ``most`` letter widths; a cut name ends with "…".

    Example:
        >>> from attnmargin.plot.labels import shortened
        >>> shortened("brilliant", 6), shortened("plain", 6)
        ('brill…', 'plain')
    """
    if letters(name) <= most:
        return name
    widths = accumulate(map(letters, name), initial=0)
    return f"{name[: sum(width < most for width in widths) - 1]}…"


def place_names(
    points: NDArray[np.float64],
    names: list[str],
    frame: tuple[float, float],
    size: float = 10.0,
    taken: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Place names one by one; return their lower left corners relative to the points, ``(T, 2)``.

    Each name takes the position around its point with the least overlap with names, marks and the
    outside of the frame; the upper right if that is free. All lengths use the unit of the font
    size.

    Args:
        points: ``(T, 2)``, relative to the lower left corner of the frame.
        names: one per point.
        frame: width and height of the frame.
        size: font size.
        taken: boxes to avoid, ``(M, 4)``, such as :func:`boxes_along` a line.

    Example:
        >>> import numpy as np
        >>> from attnmargin.plot.labels import place_names
        >>> place_names(np.array([[50.0, 50.0], [51.0, 50.0]]), ["one", "two"], (100.0, 100.0))
        array([[  7.,   5.],
               [  7., -16.]])
    """
    boxes = np.concatenate((points - _MARK, points + _MARK), -1)
    boxes = boxes if taken is None else np.concatenate((boxes, taken))
    frames = np.array([[0.0, 0.0, *frame]])
    found = []
    for point, name in zip(points, names, strict=True):
        width, height = _WIDTH * size * letters(name), _HEIGHT * size
        places = _around(width, height)
        low = point + places
        own = np.concatenate((low, low + np.array((width, height))), -1)
        best = int(np.argmin(_shared(own, boxes) - 2 * _shared(own, frames)))
        boxes = np.concatenate((boxes, own[best : best + 1]))
        found.append(places[best])
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def boxes_along(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cover a line through points, ``(K, 2)``, with small boxes, ``(M, 4)``.

    Example:
        >>> import numpy as np
        >>> from attnmargin.plot.labels import boxes_along
        >>> boxes_along(np.array([[0.0, 0.0], [6.0, 0.0]]))
        array([[-1.5, -1.5,  1.5,  1.5],
               [ 1.5, -1.5,  4.5,  1.5],
               [ 4.5, -1.5,  7.5,  1.5]])
    """
    far = np.concatenate(([0.0], np.linalg.norm(np.diff(line, axis=0), axis=-1).cumsum()))
    at = np.arange(0.0, far[-1] + 1e-9, 2 * _LINE)
    middle = np.stack([np.interp(at, far, own) for own in line.T], -1)
    return np.concatenate((middle - _LINE, middle + _LINE), -1)


def _around(width: float, height: float) -> NDArray[np.float64]:
    """List positions around a point: right and left, above and below, near and farther."""
    aside = (7.0, -7.0 - width, -width / 2)
    up = (5.0, -5.0 - height)
    far = (5.0 + height, -5.0 - 2 * height, 5.0 + 2 * height, -5.0 - 3 * height)
    beside = [(a, -height / 2) for a in aside[:2]]
    return np.array([*product(aside[:2], up), *beside, *product(aside[2:], (8.0, -8.0 - height)),
                     *product(aside, far)])  # fmt: skip


def _shared(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the total area that each box, ``(P, 4)``, shares with the others, ``(M, 4)``."""
    a, b = boxes[:, None], others[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    area: NDArray[np.float64] = sides.clip(0.0).prod(-1).sum(-1)
    return area
