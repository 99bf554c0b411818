"""The tokens of every sequence with their roles, scores and attention, ready to be drawn."""

import math
from typing import TypedDict

import torch
from torch import Tensor

from attnmargin.attention.score import scores
from attnmargin.attention.softmax import probabilities
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.certificate import Status
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words
from attnmargin.report.numbers import signed

# Length of the weights whose attention is shown if nothing was trained.
_LENGTH = 10.0


class Mark(TypedDict):
    """One token of a sequence."""

    name: str
    role: str  # "selected", "support" or ""
    asks: bool  # whether it is the query
    score: float | None  # None with a head that gives none
    share: float | None  # of the attention; None if there are no weights to show
    times: int  # how often it stands in the sequence
    first: bool  # whether it is the first of its copies


def sequence_marks(
    prediction: Prediction, words: Words, result: Confirmation | None = None, most: int = 40
) -> list[list[Mark]]:
    """Describe the visible tokens of the first ``most`` sequences."""
    data, copies, single = prediction.data, merge_copies(prediction.data), prediction.head is None
    gamma = scores(data) if single else None
    W = shown_weights(prediction, result)
    share = None if W is None else probabilities(data, W)
    asks = _asking(data)
    chosen, support = prediction.chosen, prediction.support
    if single:  # copies of a token have its role
        chosen, support = (own.gather(-1, copies.first) for own in (chosen, support))

    def mark(i: int, t: int) -> Mark:
        return Mark(
            name=words.names[i][t],
            role="selected" if chosen[i, t] else "support" if support[i, t] else "",
            asks=bool(asks[i, t]),
            score=None if gamma is None else float(gamma[i, t]) + 0.0,
            share=None if share is None else float(share[i, t]),
            times=int(copies.count[i, t]) if single else 1,
            first=not single or int(copies.first[i, t]) == t,
        )

    rows = words.visible[: min(data.n, most)]
    return [[mark(i, t) for t in row.nonzero().flatten().tolist()] for i, row in enumerate(rows)]


def _asking(data: AttentionData) -> Tensor:
    """Find the tokens that equal the query of their sequence, bool ``(n, T)``."""
    if data.z.shape[-1] != data.d:
        return data.X.new_zeros(data.X.shape[:-1], dtype=torch.bool)
    return (data.z.unsqueeze(-2) == data.X).all(-1)


def shown_weights(prediction: Prediction, result: Confirmation | None) -> Tensor | None:
    """Return the trained weights, else weights of length 10 in the predicted direction."""
    if result is not None:
        return result.run.W[-1]
    margin = float(prediction.margin)
    if prediction.solution.status != Status.OPTIMAL or not math.isfinite(margin):
        return None
    W = _LENGTH * margin * prediction.direction
    return W if prediction.finite is None else W + prediction.finite.W


def weights_words(prediction: Prediction, result: Confirmation | None) -> str:
    """Say whose attention is shown; empty if it is nobody's."""
    if shown_weights(prediction, result) is None:
        return ""
    if result is not None:
        return f"attention after {result.steps:,} steps of training"
    return f"attention of weights of length {_LENGTH:g} in the predicted direction"


def mark_words(mark: Mark) -> str:
    """Say what a token does: role, score, attention."""
    parts = [*filter(None, (mark["role"], "query" * mark["asks"]))]
    parts += [] if mark["score"] is None else [f"score {signed(mark['score'])}"]
    parts += [] if mark["share"] is None else [f"attention {mark['share']:.1%}"]
    return ", ".join(parts)
