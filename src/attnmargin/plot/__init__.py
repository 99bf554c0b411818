"""Results as matplotlib figures, which are returned and never shown."""

from attnmargin.plot.figures import (
    alignment,
    attention,
    graph,
    margins,
    picture,
    scatter,
    tokens,
    trajectory,
)
from attnmargin.plot.panels import Panel, Picture, Series

__all__ = [
    "Panel",
    "Picture",
    "Series",
    "alignment",
    "attention",
    "graph",
    "margins",
    "picture",
    "scatter",
    "tokens",
    "trajectory",
]
