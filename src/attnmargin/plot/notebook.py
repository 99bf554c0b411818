"""The explorer for notebooks."""

from typing import TYPE_CHECKING

from attnmargin.base.checks import check_kind
from attnmargin.base.errors import MissingPackageError
from attnmargin.data.attention_data import AttentionData

if TYPE_CHECKING:
    from attnmargin.plot.explorer.widget import ExplorerWidget


def explore(data: AttentionData, words: list[list[str]] | None = None) -> "ExplorerWidget":
    """Show data in a notebook as a picture to play with, an anywidget for Jupyter and marimo.

    Drag tokens, choose a method, press play: the selection, its margin and its rivals are exact at
    once. Dragging changes ``widget.data``; setting ``widget.data`` changes the picture.

    Args:
        data: one instance with one query per sequence.
        words: names of the tokens, n lists of T.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(n=2, T=4, d=2, name="notebook")
        >>> widget = am.plot.explore(data)
        >>> widget.data
        AttentionData(n=2, T=4, d=2, torch.float64)
        >>> widget.data = am.random_data(n=1, T=3, d=2, name="notebook")
        >>> widget.data.n
        1
    """
    check_kind("data", data, AttentionData)
    try:
        from attnmargin.plot.explorer.widget import explorer_widget
    except ImportError as error:
        raise MissingPackageError("am.plot.explore", "attnmargin[notebook]") from error
    return explorer_widget(data, words)
