"""Plot data → picture. Nothing is computed here, and nothing else draws."""

from typing import TYPE_CHECKING, Any, TypedDict

from numpy.typing import NDArray

from attnmargin.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


class TokenMap(TypedDict):
    """Tokens of width 2 with the direction that selects among them, as plain arrays."""

    tokens: NDArray[Any]  # (n, T, 2)
    selected: NDArray[Any]  # int (n,)
    support: NDArray[Any]  # bool (n, T): the tokens that guard the selection
    direction: NDArray[Any]  # (n, 2): W z_i


def draw_token_map(data: TokenMap) -> "Figure":
    """One panel per sequence: tokens, the selected one as a star, and its margin strip.

    Attention scores grow along the arrow W z. The solid line passes through the selected token
    and the dashed line lies one margin below it: every other token is on or behind it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("drawing", "attnmargin[plot]") from error

    n = len(data["tokens"])
    figure = Figure(figsize=(4.2 * n, 4.4), layout="constrained")
    reach = 1.15 * float(abs(data["tokens"]).max())
    for i in range(n):
        axes = figure.add_subplot(1, n, i + 1)
        axes.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        axes.set(title=f"sequence {i}", xlabel="first coordinate")
        axes.set_ylabel("second coordinate" if i == 0 else "")
        _draw_sequence(axes, data, i)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_sequence(axes: Any, data: TokenMap, i: int) -> None:
    tokens, direction = data["tokens"][i], data["direction"][i]
    chosen, colour = int(data["selected"][i]), COLOURS[i % len(COLOURS)]
    others = [t for t in range(len(tokens)) if t != chosen]
    top = float(tokens[chosen] @ direction)
    slope = [-direction[1], direction[0]]
    for level, style, label in ((top, "-", "selected level"), (top - 1.0, "--", "margin one")):
        x, y = direction * level / (direction @ direction)
        axes.axline((x, y), (x + slope[0], y + slope[1]), ls=style, c="0.5", label=label)
    axes.annotate(
        "", 0.6 * direction / (direction @ direction) ** 0.5, (0.0, 0.0),
        arrowprops={"arrowstyle": "->", "color": colour, "lw": 2},
    )  # fmt: skip
    axes.plot([], [], color=colour, lw=2, label="W z, where scores grow")
    axes.plot(*tokens[others].T, "o", color=colour, label="other token")
    axes.plot(*tokens[chosen], "*", color=colour, ms=16, label="selected token")
    guards = tokens[data["support"][i]]
    axes.plot(*guards.T, "o", mfc="none", mec="black", ms=13, label="support token")
    for t, token in enumerate(tokens):
        axes.annotate(str(t), token, xytext=(7, 7), textcoords="offset points")
