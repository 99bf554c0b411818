"""A prediction and its confirmation → plot data."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.softmax import probabilities
from attnmargin.data.copies import merge_copies
from attnmargin.plot.bands import array, band
from attnmargin.plot.panels import GREY, INK, Panel, Series, series_at
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words
from attnmargin.training.measures import misalignment

# Sizes of a token picture and of a curve picture, in inches.
TOKEN_SIZE, CURVE_SIZE = (3.9, 3.5), (4.4, 3.4)
# Below this, 1 − correlation is rounding error.
_EXACT = 1e-16
Ends = tuple[float, float]


def token_panel(prediction: Prediction, words: Words, i: int, result: Confirmation | None) -> Panel:
    """Show the tokens of sequence i in their plane, or in a projection if they have d > 2.

    In the projection, the first axis is the direction ``W z``; the second is the direction across
    it in which the tokens spread most. Attention grows along the arrow. The solid line passes
    through the selected token. The dashed line lies one margin below it, and every other token is
    on or behind it. The dotted curve is the path of ``W(k) z`` in training, scaled to fit.
    """
    data, copies = prediction.data, merge_copies(prediction.data)
    first = copies.first[i].cpu() == torch.arange(data.T)
    seen = words.visible[i].cpu() & (first if prediction.head is None else torch.tensor(True))
    flat = data.d == 2
    X, z, W = (x.double().cpu() for x in (data.X[i], data.z[i], prediction.direction))
    X, direction = X[seen], W @ z
    basis = torch.eye(2, dtype=X.dtype) if flat else _plane(X, direction)
    tokens, way = array(X @ basis.mT), array(direction @ basis.mT)
    x, y = (_limits(tokens[:, k], room) for k, room in ((0, 0.22), (1, 0.12)))
    if flat:
        x = y = (min(x[0], y[0]), max(x[1], y[1]))
    chosen, guards = (
        array(own[i].cpu()[seen]) > 0 for own in (prediction.chosen, prediction.support)
    )
    path = [] if result is None else _path(result.run.W.double().cpu() @ z @ basis.mT, x, y)
    counts = copies.count[i].tolist() if prediction.head is None else [1] * data.T
    names = [
        f"{name} ×{count}" if count > 1 else name
        for name, count, shown in zip(words.names[i], counts, seen.tolist(), strict=True)
        if shown
    ]
    marks = [
        series_at("points", tokens[~chosen], colour=0, size=6),
        series_at("points", tokens[chosen], colour=1, marker="*", size=15),
        series_at("points", tokens[guards], colour=INK, marker="ring"),
        series_at("names", tokens, labels=names),
    ]
    return Panel(
        title=words.titles[i],
        axes=("first coordinate (x₁)", "second coordinate (x₂)")
        if flat
        else ("along the predicted direction (W_mm z)", "widest spread across it"),
        series=[*_strip(way, tokens[chosen], x), *path, *marks],
        square=flat,
        grid=False,
        across=x,
        limits=y,
    )


def _limits(values: NDArray[Any], room: float) -> Ends:
    """Return the ends of an axis that shows the values and the origin, with room for names."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    width = max(high - low, 1e-9)
    return low - room * width, high + (room + 0.1) * width


def _strip(direction: NDArray[Any], selected: NDArray[Any], x: Ends) -> list[Series]:
    """Draw lines of equal attention through the selected token and one margin below; an arrow."""
    size = float(direction @ direction)
    if size == 0.0 or not len(selected):
        return []
    top = float((selected @ direction).max())
    across = np.array((-direction[1], direction[0]))
    series = []
    for style, level in enumerate((top, top - 1.0)):
        at = direction * level / size
        two = np.stack((at, at + across))
        series.append(series_at("endless", two, style=style, colour=GREY))
    tip = np.stack((np.zeros(2), 0.55 * x[1] * direction / size**0.5))
    return [*series, series_at("arrow", tip, colour=1, width=2)]


def _path(path: Tensor, x: Ends, y: Ends) -> list[Series]:
    """Draw the path of ``W(k) z`` with logarithmic lengths, so that its beginning is visible."""
    size = torch.linalg.vector_norm(path, dim=-1, keepdim=True)
    if float(size.max()) == 0.0:
        return []
    places = _fitted(array(path * torch.log1p(size) / size.where(size > 0, 1.0)), x, y)
    return [series_at("line", places, style=2, colour=2, width=2.5)]


def _fitted(path: NDArray[Any], x: Ends, y: Ends) -> NDArray[Any]:
    """Scale a path from the origin until it just fits inside the axes."""
    ends = [(path[:, k].min(), path[:, k].max(), axis) for k, axis in ((0, x), (1, y))]
    ratios = [bound / value for low, high, (least, most) in ends
              for value, bound in ((low, least), (high, most)) if value * bound > 0]  # fmt: skip
    scaled: NDArray[Any] = 0.92 * min(ratios, default=1.0) * path
    return scaled


def _plane(X: Tensor, direction: Tensor) -> Tensor:
    """Return two orthonormal rows: a direction, and the widest spread of tokens across it."""
    size = direction.norm()
    first = direction / size if float(size) > 0 else torch.eye(len(direction), dtype=X.dtype)[0]
    rest = X - X.mean(0)
    rest = rest - (rest @ first).unsqueeze(-1) * first
    second = torch.linalg.svd(rest).Vh[0]
    second = second - (second @ first) * first
    length = second.norm()
    return torch.stack((first, second / length if float(length) > 1e-12 else 0.0 * first))


def alignment_panel(result: Confirmation) -> Panel:
    """Show how far the weights are from the predicted direction during training."""
    run, direction = result.run, result.prediction.direction.nan_to_num(nan=0.0)
    off = misalignment(run.W, direction).clamp_min(_EXACT)
    return Panel(
        title="how far the weights are from the prediction",
        axes=("training step", "distance from W_mm (1 − correlation)"),
        logarithmic=(True, True),
        series=[band("", run.steps[1:], off[1:])],
    )


def attention_panel(result: Confirmation) -> Panel:
    """Show the share of attention on the predicted tokens during training."""
    run, own = result.run, result.prediction
    share = torch.stack([predicted_share(own, W) for W in run.W]).flatten(
        1 + len(own.data.batch_shape)
    )
    return Panel(
        title="how much attention the predicted tokens get",
        axes=("training step", "share of attention (1 is all)"),
        logarithmic=(True, False),
        series=[
            band("mean over sequences", run.steps, share.mean(-1)),
            band("worst sequence", run.steps, share.amin(-1), style=1),
        ],
    )


def predicted_share(prediction: Prediction, W: Tensor) -> Tensor:
    """Compute the attention on the predicted tokens, per query; 1 if a query sees no token.

    Tokens that equal a predicted one count too.
    """
    s, chosen = probabilities(prediction.data, W), prediction.chosen
    if prediction.head is None:
        chosen = chosen.gather(-1, merge_copies(prediction.data).first)
    return s.where(chosen, 0.0).sum(-1).where(s.sum(-1) > 0, 1.0)
