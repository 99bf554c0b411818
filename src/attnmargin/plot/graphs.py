"""A token-priority graph → plot data, in pixels from the lower left corner."""

import numpy as np

from attnmargin.graphs import TokenGraph
from attnmargin.plot.graph_geometry import Floats, graph_plan
from attnmargin.plot.labels import letters, shortened
from attnmargin.plot.panels import GREY, INK, Panel, series_at

_PIXELS = 96.0  # per inch
_LETTER = 0.088  # width of a letter in the title, in inches
_TURN = np.linspace(0.0, 2.0 * np.pi, 91)


def graph_panel(graph: TokenGraph) -> tuple[Panel, tuple[float, float]]:
    """Show tokens in boxes and arrows to those they dominate; also return the size in inches."""
    plan = graph_plan(graph)
    width, height = (float(length) for length in plan.size)

    def up(places: Floats) -> Floats:
        """Flip y: pixels count from the top, plots from the bottom."""
        return places * (1.0, -1.0) + (0.0, height)

    lines = [up(np.array([(0.0, y), (width, y)])) for y in plan.between]
    rings = [
        up(at + half * np.stack((np.cos(_TURN), np.sin(_TURN)), -1)) for at, half in plan.rings
    ]
    corners = up(plan.places)[:, None] + plan.halves[:, None] * [[[-1.0], [1.0]]]
    series = [
        *(series_at("line", line, colour="0.85") for line in lines),
        *(series_at("line", ring, colour=0, style=1) for ring in rings),
        *(series_at("arrow", up(arrow), colour=GREY) for arrow in plan.arrows),
        *(series_at("box", own, word, colour=INK)
          for own, word in zip(corners, plan.words, strict=True)),
    ]  # fmt: skip
    title = f"after “{shortened(graph.name, 24)}”: which tokens win over which"
    panel = Panel(
        title=title,
        axes=("", ""),
        series=series,
        square=True,
        bare=True,
        across=(0.0, width),
        limits=(0.0, height),
    )
    # The title needs its own line, and the axes a little room.
    wide = max(width / _PIXELS, _LETTER * letters(title)) + 0.1
    return panel, (wide, height / _PIXELS + 0.4)
