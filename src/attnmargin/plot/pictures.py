"""Plot data → picture. Nothing is computed here, and nothing else draws."""

import hashlib
import io
import re
import warnings
from html import escape
from typing import TYPE_CHECKING, Any, TypedDict

from numpy.typing import NDArray

from attnmargin.base.errors import MissingPackageError
from attnmargin.plot.labels import place_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers, on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# What is drawn in this colour becomes the colour of the text around the picture.
_INK = "#010203"
_SIZE = (3.9, 3.5)  # of a picture of tokens, in inches


class TokenPanel(TypedDict):
    """The tokens of one sequence in a plane, as plain arrays."""

    title: str
    axes: tuple[str, str]
    names: list[str]
    tokens: NDArray[Any]  # (T, 2)
    selected: NDArray[Any]  # bool (T,)
    support: NDArray[Any]  # bool (T,): the tokens that guard the selection
    direction: NDArray[Any]  # (2,): W z, along which the attention grows
    path: NDArray[Any] | None  # (R, 2): W(k) z during training
    square: bool  # whether both axes have the same scale


class Curve(TypedDict):
    """One curve of a picture."""

    name: str
    x: NDArray[Any]
    y: NDArray[Any]


class Curves(TypedDict):
    """Curves over one axis."""

    title: str
    axes: tuple[str, str]
    logarithmic: tuple[bool, bool]
    curves: list[Curve]


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("drawing", "attnmargin[plot]") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    return figure


def _axes(figure: "Figure", title: str, names: tuple[str, str]) -> Any:
    axes = figure.add_subplot()
    axes.patch.set_alpha(0.0)
    axes.set_title(title, color=_INK, fontsize=11, parse_math=False)
    axes.set_xlabel(names[0], color=_INK)
    axes.set_ylabel(names[1], color=_INK)
    axes.tick_params(colors=_INK)
    for spine in axes.spines.values():
        spine.set_color(_INK)
    return axes


def draw_tokens(panel: TokenPanel) -> "Figure":
    """Tokens of one sequence, the selected ones as stars, and the margin strip.

    Attention grows along the arrow W z. The solid line passes through the selected token and the
    dashed line lies one margin below it: every other token is on or behind it. The dotted curve is
    the way of W(k) z during training, scaled to the picture.
    """
    figure = _figure(*_SIZE)
    axes = _axes(figure, panel["title"], panel["axes"])
    x, y = (_limits(panel["tokens"][:, k], room) for k, room in ((0, 0.22), (1, 0.12)))
    if panel["square"]:
        x = y = (min(x[0], y[0]), max(x[1], y[1]))
        axes.set_aspect("equal")
    axes.set(xlim=x, ylim=y)
    _strip(axes, panel, x)
    if panel["path"] is not None and float(abs(panel["path"]).max()) > 0:
        axes.plot(*_fitted(panel["path"], x, y).T, ":", color=COLOURS[2], lw=2.5)
    _marks(axes, panel)
    return figure


def _limits(values: NDArray[Any], room: float) -> tuple[float, float]:
    """Both ends of an axis that shows values and the origin, with room for names."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    width = max(high - low, 1e-9)
    return low - room * width, high + (room + 0.1) * width


def _fitted(path: NDArray[Any], x: tuple[float, float], y: tuple[float, float]) -> NDArray[Any]:
    """A path from the origin, scaled until it just stays inside of the axes."""
    ends = [(path[:, k].min(), path[:, k].max(), axis) for k, axis in ((0, x), (1, y))]
    ratios = [bound / value for low, high, (least, most) in ends
              for value, bound in ((low, least), (high, most)) if value * bound > 0]  # fmt: skip
    scaled: NDArray[Any] = 0.92 * min(ratios, default=1.0) * path
    return scaled


def _strip(axes: Any, panel: TokenPanel, x: tuple[float, float]) -> None:
    """The lines of equal attention through the selected token and one margin below."""
    direction = panel["direction"]
    selected, size = panel["tokens"][panel["selected"]], float(direction @ direction)
    if size == 0.0 or not len(selected):
        return
    top = float((selected @ direction).max())
    slope = (-direction[1], direction[0])
    for level, style in ((top, "-"), (top - 1.0, "--")):
        at = direction * level / size
        axes.axline(tuple(at), tuple(at + slope), ls=style, c="0.55", lw=1.2)
    arrow = {"arrowstyle": "->", "color": COLOURS[1], "lw": 2}
    tip = 0.55 * x[1] * direction / size**0.5
    axes.annotate("", tuple(tip), (0.0, 0.0), arrowprops=arrow)


def _marks(axes: Any, panel: TokenPanel) -> None:
    tokens, selected = panel["tokens"], panel["selected"]
    axes.plot(*tokens[~selected].T, "o", color=COLOURS[0])
    axes.plot(*tokens[selected].T, "*", color=COLOURS[1], ms=15)
    axes.plot(*tokens[panel["support"]].T, "o", mfc="none", mec=_INK, ms=12)
    for name, token, place in zip(panel["names"], tokens, _name_places(axes, panel), strict=True):
        axes.annotate(name, token, xytext=place, textcoords="offset points", color=_INK,
                      fontsize=10, parse_math=False)  # fmt: skip


def _name_places(axes: Any, panel: TokenPanel) -> NDArray[Any]:
    """Places of names, in points; ticks and titles leave about so much of the figure."""
    wide, high = (72 * share * length for share, length in zip((0.8, 0.76), _SIZE, strict=True))
    if panel["square"]:
        wide = high = min(wide, high)
    (left, right), (low, top) = axes.get_xlim(), axes.get_ylim()
    shares = (panel["tokens"] - (left, low)) / (right - left, top - low)
    return place_names(shares * (wide, high), panel["names"], (wide, high))


def draw_curves(data: Curves) -> "Figure":
    """Curves with a legend."""
    figure = _figure(4.4, 3.4)
    axes = _axes(figure, data["title"], data["axes"])
    for k, curve in enumerate(data["curves"]):
        colour = COLOURS[k % len(COLOURS)]
        style = ("-", "--", ":", "-.")[k % 4]
        axes.plot(curve["x"], curve["y"], style, color=colour, lw=2, label=curve["name"])
    along, up = data["logarithmic"]
    axes.set_xscale("symlog" if along else "linear")
    axes.set_yscale("log" if up else "linear")
    if not along and all(curve["x"].dtype.kind in "iu" for curve in data["curves"]):
        axes.locator_params(axis="x", integer=True)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, labelcolor=_INK, fontsize=9)
    return figure


def _own_names(text: str) -> str:
    """The same picture with ids that no other picture of the page has."""
    prefix = f"p{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}", text)


def svg(figure: "Figure", description: str) -> str:
    """A figure as text that can stand in a page, in the colour of the text around it."""
    from matplotlib import rc_context

    stream = io.StringIO()
    settings: Any = {"svg.hashsalt": "attnmargin", "svg.fonttype": "path"}
    with rc_context(settings), warnings.catch_warnings():
        # A word may be in a script that the font does not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = _own_names(stream.getvalue().replace(_INK, "currentColor"))
    label = f'<svg role="img" aria-label="{escape(description, quote=True)}"'
    return text[text.index("<svg") :].replace("<svg", label, 1)
