"""Results as matplotlib figures; functions return figures and never show them."""

from attnmargin.plot.figures import (
    alignment,
    attention,
    graph,
    heads,
    margins,
    norms,
    picture,
    scatter,
    tokens,
    trajectory,
    watch,
)
from attnmargin.plot.notebook import explore
from attnmargin.plot.panels import Panel, Picture, Series

__all__ = [
    "Panel",
    "Picture",
    "Series",
    "alignment",
    "attention",
    "explore",
    "graph",
    "heads",
    "margins",
    "norms",
    "picture",
    "scatter",
    "tokens",
    "trajectory",
    "watch",
]
