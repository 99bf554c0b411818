"""SVG as text: hand-written elements, and matplotlib figures to embed in a page."""

import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, final

from attnmargin.plot.drawing import save
from attnmargin.plot.panels import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


def number(value: float) -> str:
    """Round to 0.1, the finest step that a screen shows."""
    return f"{round(float(value), 1) + 0.0:.1f}".removesuffix(".0")


def element(tag: str, attributes: Mapping[str, Any] | None = None, *children: str) -> Markup:
    """Write one element; escape plain strings and round numbers to 0.1.

    Args:
        attributes: strings or numbers by name; None omits an attribute.
        children: results of :func:`element`, or plain text.

    Example:
        >>> from attnmargin.plot.svg import element
        >>> element("g", {"class": "token"}, element("text", {"x": 1 / 3}, "a < b"))
        '<g class="token"><text x="0.3">a &lt; b</text></g>'
    """
    given = ((name, value) for name, value in (attributes or {}).items() if value is not None)
    start = "".join(f' {name}="{_attribute(value)}"' for name, value in given)
    inside = "".join(c if isinstance(c, Markup) else escape(c, quote=False) for c in children)
    return Markup(f"<{tag}{start}>{inside}</{tag}>" if inside else f"<{tag}{start}/>")


def _attribute(value: Any) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def straight(*places: Iterable[float]) -> str:
    """Write the ``d`` of a path of straight lines between points."""
    return "M" + "L".join(" ".join(map(number, place)) for place in places)


def embedded(figure: "Figure", description: str) -> str:
    """Write a figure as SVG to embed in a page, in the colour of the surrounding text."""
    stream = io.BytesIO()
    save(figure, "svg", stream, transparent=True)
    text = _own_names(stream.getvalue().decode().replace(INK, "currentColor"))
    label = f'<svg role="img" aria-label="{escape(description)}"'
    return text[text.index("<svg") :].replace("<svg", label, 1)


def _own_names(text: str) -> str:
    """Make the ids of a picture unique within the page."""
    prefix = f"p{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}", text)
