"""Join the JavaScript modules of the explorer to one script.

The modules share one scope: imports between them are dropped, and no two define the same name.
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async |class )|^export \{\};\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n|[ \t]*/\*\*.*?\*/(?:[ \t]*\n)?", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
_STEPS = "TOUR_STEPS = "


@cache
def bundled(start: str) -> str:
    """Return a module and all that it imports, in order, as the text of one script.

    >>> bundled("marks.js").count("function outline(")
    1
    """
    ordered: dict[str, str] = {}
    _collect(start, ordered)
    return _BLANK.sub("\n", "".join(map(_plain, ordered.values())))


def asset(name: str) -> str:
    """Read a text file of the explorer."""
    return (files("attnmargin.report.explorer") / name).read_text("utf-8")


def tour_steps() -> list[dict[str, Any]]:
    """Return the steps of the guided tour: title, text, task and state.

    >>> len(tour_steps())
    6
    """
    text = asset("modules/steps.js").split(_STEPS, 1)[1]
    steps: list[dict[str, Any]] = json.loads(text.strip().removesuffix(";"))
    return steps


def _collect(name: str, ordered: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    text = asset(f"modules/{name}")
    ordered.setdefault(name, "")
    for other in _IMPORT.findall(text):
        if other not in ordered:
            _collect(other, ordered)
    del ordered[name]
    ordered[name] = text


def _plain(text: str) -> str:
    """Drop imports, the word export, and comments."""
    return _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
