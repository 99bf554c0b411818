"""The page of the explorer, and the explorer inside other pages."""

from html import escape
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.plot.explorer.bundle import asset, bundled, styles, tour_steps
from attnmargin.plot.explorer.state import explorer_state
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words
from attnmargin.report.pages.html import json_script, page, write_page

TITLE = "What will attention select?"


def prediction_explorer(
    prediction: Prediction, words: Words, begin: dict[str, Any] | None = None
) -> str:
    """Build the explorer for the run of a prediction; nothing if it cannot show that run.

    With ``begin``, parts of the state that it begins with, it has the guided tour.
    """
    course = prediction.course
    if prediction.head is not None or not isinstance(course.loss, str) or course.settings:
        return ""
    try:
        state = explorer_state(prediction.data, words.names if words.spoken else None)
    except InputError:
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
        f"<style data-explorer>{styles()}</style>"
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
        words = f"<strong>{number}. {escape(step['title'])}.</strong> {escape(step['text'])}"
        picture = asset(f"stills/{number}.svg")
        parts.append(f"<figure>{picture}<figcaption>{words}</figcaption></figure>")
    return f'<div class="pictures">{"".join(parts)}</div>'
