"""Data as a state of the explorer, and back."""

from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData

# Larger data would not answer at once.
_TOKENS, _WIDTH, _WORK = 400, 128, 200_000


def explorer_state(data: AttentionData, words: list[list[str]] | None = None) -> dict[str, Any]:
    """Describe data as a state of the explorer, ready for JSON.

    Without labels all are +1; without a head, it reads the first coordinate.

    >>> data = AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]])
    >>> explorer_state(data)["data"]["v"]
    [1.0, 0.0]
    """
    _check(data)
    seen = data.X.new_ones(data.X.shape[:-1]).bool() if data.mask is None else data.mask
    X = [x[own].tolist() for x, own in zip(data.X.double(), seen, strict=True)]
    v = [1.0, *[0.0] * (data.d - 1)] if data.v is None else data.v.double().tolist()
    y = [1] * data.n if data.y is None else [int(label) for label in data.y]
    own = {"X": X, "z": data.z.double().tolist(), "y": y, "v": v}
    shown = None
    if words is not None:
        shown = [
            [name for name, is_seen in zip(names, row.tolist(), strict=True) if is_seen]
            for names, row in zip(words, seen, strict=True)
        ]
    return {"scene": "plane", "data": own, "words": shown, "start": []}


def state_data(state: dict[str, Any]) -> AttentionData:
    """Return the data of a state, in float64; sequences of different lengths are padded.

    >>> data = AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]])
    >>> state_data(explorer_state(data)).X.tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    own = state["data"]
    y = [float(label) for label in own["y"]]
    return AttentionData(
        [_floats(x) for x in own["X"]], _floats(own["z"]), y, _floats([own["v"]])[0]
    )


def _floats(rows: list[list[float]]) -> list[list[float]]:
    """JSON has no difference between 1 and 1.0."""
    return [[float(x) for x in row] for row in rows]


def _check(data: AttentionData) -> None:
    if data.batch_shape:
        got = f"a batch of shape {tuple(data.batch_shape)}"
        raise InputError("data", got, "one instance: data[index]")
    if data.z.ndim == data.X.ndim:
        raise InputError("data", "several queries per sequence", "one query per sequence")
    tokens = data.n * data.T
    most = min(_TOKENS, _WORK // data.d**2)
    if tokens > most or data.d > _WIDTH:
        needs = f"at most {most} tokens in all"
        if data.d > _WIDTH:
            needs = f"tokens of width at most {_WIDTH}"
        raise InputError("data", f"{tokens} tokens of width {data.d}", needs)
