"""The page of the explorer, and the explorer inside other pages."""

from html import escape
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words
from attnmargin.report.explorer.bundle import asset, bundled, tour_steps
from attnmargin.report.pages.html import json_script, page, write_page

TITLE = "What will attention select?"
# Larger data would not answer at once.
_TOKENS, _WIDTH = 400, 128
_STYLES = ("style.css", "sentences.css", "nextgraph.css")


def explorer_state(data: AttentionData, words: list[list[str]] | None = None) -> dict[str, Any]:
    """Describe data as a state of the explorer, ready for JSON.

    Without labels all are +1; without a head, it reads the first coordinate.
    """
    _check(data)
    seen = data.X.new_ones(data.X.shape[:-1]).bool() if data.mask is None else data.mask
    X = [x[own].tolist() for x, own in zip(data.X.double(), seen, strict=True)]
    v = [1.0, *[0.0] * (data.d - 1)] if data.v is None else data.v.tolist()
    y = [1] * data.n if data.y is None else [int(label) for label in data.y]
    shown = None
    if words is not None:
        shown = [
            [name for name, is_seen in zip(names, own.tolist(), strict=True) if is_seen]
            for names, own in zip(words, seen, strict=True)
        ]
    own = {"X": X, "z": data.z.double().tolist(), "y": y, "v": v}
    return {"scene": "plane", "data": own, "words": shown, "start": []}


def _check(data: AttentionData) -> None:
    if data.batch_shape:
        got = f"a batch of shape {tuple(data.batch_shape)}"
        raise InputError("data", got, "one instance: data[index]")
    if data.z.ndim == data.X.ndim:
        raise InputError("data", "several queries per sequence", "one query per sequence")
    tokens = data.n * data.T
    if tokens > _TOKENS or data.d > _WIDTH:
        needs = f"at most {_TOKENS} tokens in all, of width at most {_WIDTH}"
        raise InputError("data", f"{tokens} tokens of width {data.d}", needs)


def prediction_explorer(
    prediction: Prediction, words: Words, begin: dict[str, Any] | None = None
) -> str:
    """Build the explorer for the run of a prediction; nothing if it cannot show that run.

    With ``begin``, parts of the state that it begins with, it has the guided tour.
    """
    course = prediction.course
    try:
        state = explorer_state(prediction.data, words.names if words.spoken else None)
    except InputError:
        return ""
    if prediction.head is not None or not isinstance(course.loss, str):
        return ""
    state["settings"] = {
        "method": course.method, "parameter": course.parameter, "norm": "fro", "p": course.p,
        "lr": float(course.lr), "normalize": course.normalize, "loss": course.loss,
    }  # fmt: skip
    if course.asked is not None:
        K, *Q = course.init or ()
        state["start"] = (K @ Q[0].mT if Q else K).double().flatten().tolist()
    return explorer_part(state | (begin or {}), tour=begin is not None)


def explorer_part(state: dict[str, Any] | None = None, tour: bool = True) -> str:
    """Build the explorer as a part of a page; without scripts, the stills of its tour."""
    given = "" if state is None else json_script("explorer-state", state)
    off = "" if tour else ' data-tour="off"'
    return (
        f"<style data-explorer>{''.join(map(asset, _STYLES))}</style>"
        f'<div id="explorer"{off}>{_stills() if tour else ""}</div>{given}'
        f'<script type="module">{bundled("page")}$page.startPage();</script>'
    )


def explorer_page(state: dict[str, Any] | None = None) -> str:
    """Build the page of the explorer: one file that loads nothing."""
    return page(TITLE, explorer_part(state))


def write_explorer(
    path: Path, data: AttentionData | None = None, words: list[list[str]] | None = None
) -> Path:
    """Write the page, with some data or with its own example."""
    state = None if data is None else explorer_state(data, words)
    return write_page(path, explorer_page(state))


def _stills() -> str:
    """Show the tour as pictures with text; the script replaces it."""
    parts = []
    for number, step in enumerate(tour_steps(), 1):
        picture = asset(f"stills/{number}.svg")
        words = f"<strong>{number}. {escape(step['title'])}.</strong> {escape(step['text'])}"
        parts.append(f"<figure>{picture}<figcaption>{words}</figcaption></figure>")
    return f'<div class="pictures">{"".join(parts)}</div>'
