"""Where names stand beside their points, so that they can be read."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

# Half of the room of a mark, and the height of a line and width of a letter, at font size 1.
_MARK, _HEIGHT, _WIDTH = 5.0, 1.1, 0.58


def place_names(
    points: NDArray[np.float64],
    names: list[str],
    frame: tuple[float, float],
    size: float = 10.0,
) -> NDArray[np.float64]:
    """Lower left corners of names, relative to their points, ``(T, 2)``; one name after the other.

    Each takes the place around its point that covers the least of names, marks and what is outside
    of the frame; the usual one, to the upper right, where it is free. All lengths are in the unit
    of the font size.

    Args:
        points: ``(T, 2)``, from the lower left corner of the frame.
        names: one each.
        frame: width and height.
        size: of the font.

    Example:
        >>> import numpy as np
        >>> from attnmargin.plot.labels import place_names
        >>> place_names(np.array([[50.0, 50.0], [51.0, 50.0]]), ["one", "two"], (100.0, 100.0))
        array([[  7.,   5.],
               [  7., -16.]])
    """
    boxes = np.concatenate((points - _MARK, points + _MARK), -1)  # what is taken
    frames = np.array([[0.0, 0.0, *frame]])
    found = []
    for point, name in zip(points, names, strict=True):
        width, height = _WIDTH * size * len(name), _HEIGHT * size
        places = _around(width, height)
        low = point + places
        own = np.concatenate((low, low + np.array((width, height))), -1)
        best = int(np.argmin(_shared(own, boxes) - 2 * _shared(own, frames)))
        boxes = np.concatenate((boxes, own[best : best + 1]))
        found.append(places[best])
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _around(width: float, height: float) -> NDArray[np.float64]:
    """Places around a point: to the right and to the left, above and below, near and farther."""
    aside = (7.0, -7.0 - width, -width / 2)
    up = (5.0, -5.0 - height)
    far = (5.0 + height, -5.0 - 2 * height, 5.0 + 2 * height, -5.0 - 3 * height)
    beside = [(a, -height / 2) for a in aside[:2]]
    return np.array([*product(aside[:2], up), *beside, *product(aside[2:], (8.0, -8.0 - height)),
                     *product(aside, far)])  # fmt: skip


def _shared(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The area that each box, ``(P, 4)``, shares with all others, ``(M, 4)``, together."""
    a, b = boxes[:, None], others[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    area: NDArray[np.float64] = sides.clip(0.0).prod(-1).sum(-1)
    return area
