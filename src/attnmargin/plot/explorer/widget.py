"""The explorer in a notebook, as an anywidget: Jupyter, marimo, and all that read anywidgets."""

from typing import final

import anywidget
import traitlets

from attnmargin.data.attention_data import AttentionData
from attnmargin.plot.explorer.bundle import bundled, styles
from attnmargin.plot.explorer.state import explorer_state, state_data


@final
class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of some data. Dragging a token changes ``widget.data``, and the other way round.

    ``state`` is the whole state of the page as plain data, with the method and start of its run.
    """

    _esm = f"{bundled('widget')}export default {{ render: $widget.renderWidget }};\n"
    _css = styles()
    state = traitlets.Dict().tag(sync=True)

    @property
    def data(self) -> AttentionData:
        """The data as they are on the screen, in float64."""
        return state_data(self.state)

    @data.setter
    def data(self, data: AttentionData) -> None:
        self.state = dict(self.state) | explorer_state(data)


def explorer_widget(data: AttentionData, words: list[list[str]] | None) -> ExplorerWidget:
    """Build the widget of some data."""
    return ExplorerWidget(state=explorer_state(data, words))
