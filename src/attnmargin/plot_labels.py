"""Where names stand beside their points, so that they can be read."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]  # left, bottom, right, top

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
        >>> from attnmargin.plot_labels import place_names
        >>> place_names(np.array([[50.0, 50.0], [51.0, 50.0]]), ["one", "two"], (100.0, 100.0))
        array([[  7.,   5.],
               [  7., -16.]])
    """
    marks: list[Box] = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in points.tolist()]
    taken: list[Box] = []
    found = []
    for (x, y), name in zip(points.tolist(), names, strict=True):
        width, height = _WIDTH * size * len(name), _HEIGHT * size
        places = _around(width, height)
        boxes = [(x + a, y + b, x + a + width, y + b + height) for a, b in places]
        costs = [
            sum(_common(box, other) for other in (*taken, *marks)) + 2 * _outside(box, frame)
            for box in boxes
        ]
        best = int(np.argmin(costs))
        taken.append(boxes[best])
        found.append(places[best])
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _around(width: float, height: float) -> list[tuple[float, float]]:
    """Places around a point: to the right and to the left, above and below, near and farther."""
    aside = (7.0, -7.0 - width, -width / 2)
    up = (5.0, -5.0 - height)
    far = (5.0 + height, -5.0 - 2 * height, 5.0 + 2 * height, -5.0 - 3 * height)
    beside = [(a, -height / 2) for a in aside[:2]]
    return [*product(aside[:2], up), *beside, *product(aside[2:], (8.0, -8.0 - height)),
            *product(aside, far)]  # fmt: skip


def _common(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0.0 and high > 0.0 else 0.0


def _outside(box: Box, frame: tuple[float, float]) -> float:
    """The area of a box that is outside of the frame."""
    whole = (box[2] - box[0]) * (box[3] - box[1])
    return whole - _common(box, (0.0, 0.0, *frame))
