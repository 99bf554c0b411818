"""A cloud of named points as a picture that tells a name under the pointer."""

from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT, _LEFT, _BELOW, _TOP = 440, 330, 46, 40, 10


class Cloud(NamedTuple):
    """Points with names."""

    x: NDArray[Any]
    y: NDArray[Any]
    names: list[str]
    axes: tuple[str, str]


def scatter(cloud: Cloud) -> str:
    """SVG with one circle per point; its title is the name and both numbers."""
    x, y = (_scaled(np.asarray(v, float)) for v in (cloud.x, cloud.y))
    across = _LEFT + x[0] * (_WIDTH - _LEFT - 10)
    up = _TOP + (1.0 - y[0]) * (_HEIGHT - _TOP - _BELOW)
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" class="{_side(p)}"><title>{escape(name)}: '
        f"{p:+.2f}, {q:+.2f}</title></circle>"
        for a, b, p, q, name in zip(across, up, cloud.x, cloud.y, cloud.names, strict=True)
    )
    label = escape(f"{cloud.axes[1]} against {cloud.axes[0]}", quote=True)
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" '
        f'font-size="11" fill="currentColor"><style>.over{{fill:#d55e00;opacity:.6}}'
        f".under{{fill:#3b82c4;opacity:.6}}.level{{fill:#888;opacity:.5}}</style>"
        f"{_ticks(x[1], y[1])}{dots}"
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(cloud.axes[0])}</text></svg>"
        f"<figcaption>{escape(cloud.axes[1])}</figcaption></figure>"
    )


def _side(difference: float) -> str:
    return "over" if difference > 0.0 else "under" if difference < 0.0 else "level"


def _scaled(values: NDArray[Any]) -> tuple[NDArray[Any], tuple[float, float]]:
    """Values between 0 and 1, and what these ends stand for."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    room = 0.04 * (high - low) or 1.0
    low, high = low - room, high + room
    return (values - low) / (high - low), (low, high)


def _ticks(x: tuple[float, float], y: tuple[float, float]) -> str:
    """Lines with numbers along both axes."""
    parts = []
    for value in _round_values(*x):
        a = _LEFT + (value - x[0]) / (x[1] - x[0]) * (_WIDTH - _LEFT - 10)
        parts.append(f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BELOW}" '
                     f'stroke="#8884"/><text x="{a:.1f}" y="{_HEIGHT - _BELOW + 14}" '
                     f'text-anchor="middle">{value:g}</text>')  # fmt: skip
    for value in _round_values(*y):
        b = _TOP + (y[1] - value) / (y[1] - y[0]) * (_HEIGHT - _TOP - _BELOW)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{b:.1f}" y2="{b:.1f}" '
                     f'stroke="#8884"/><text x="{_LEFT - 6}" y="{b + 4:.1f}" '
                     f'text-anchor="end">{value:g}</text>')  # fmt: skip
    return "".join(parts)


def _round_values(low: float, high: float) -> list[float]:
    """Some round numbers between the ends."""
    size = 10.0 ** np.floor(np.log10((high - low) / 4.0))
    step = next(size * k for k in (1.0, 2.0, 5.0, 10.0) if size * k >= (high - low) / 6.0)
    first, last = int(np.ceil(low / step)), int(np.floor(high / step))
    return [round(k * step, 10) for k in range(first, last + 1)]
