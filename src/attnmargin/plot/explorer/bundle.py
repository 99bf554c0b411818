"""Join the JavaScript modules of the explorer to one script.

Every module becomes a function that returns what it exports, after those that it imports:

    const $view = (() => { const { html } = $dom; …; return { dot, times }; })();
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from attnmargin.plot.styles import short_style

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:(?:async )?function|const|class) (\w+|\[[^\]]*\])", re.MULTILINE)
_WORD = re.compile(r"^export (?:\{\};\n)?", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*//[^\n]*\n|[ \t]*/\*\*[\s\S]*?\*/(?:[ \t]*\n)?", re.MULTILINE)
_INDENT = re.compile(r"\n\s+")
# Blanks around these say nothing, outside of strings and templates; lines with patterns stay whole.
_BLANKS = re.compile(r" ?([=*,;:{}()\[\]<>&|?!%]+) ?| (/|[+-](?! [+-])) ")
_FILLED = r"\$\{(?:[^`{}]|\{[^`{}]*\}|`[^`$]*`)*\}"
_STRING = re.compile(rf'("(?:[^"\\]|\\.)*"|`(?:[^`$\\]|\\.|{_FILLED})*`)')
# Lines go on after some marks and before others; no template has several lines.
_GOES_ON = re.compile(r"(?<=[{;,(\[])\n|\n(?=[)}\]?:.&|])")
_WHOLE = re.compile(r"[`']|(?! / )(?<! )/|/(?! )")
_STEPS = "TOUR_STEPS = "
_STYLES = ("style.css", "sentences.css", "nextgraph.css")


@cache
def bundled(start: str) -> str:
    """Return a module and all that it imports as one script, which defines ``$start``.

    >>> bundled("marks").splitlines()[0]
    'const $dom = (() => {'
    """
    ordered: dict[str, str] = {}
    _collect(start, ordered, ())
    return "".join(ordered.values())


def asset(name: str) -> str:
    """Read a text file of the explorer."""
    return (files("attnmargin.plot.explorer") / name).read_text("utf-8")


def styles() -> str:
    """Return the style sheets of the explorer as one text."""
    return short_style("".join(map(asset, _STYLES)))


def tour_steps() -> list[dict[str, Any]]:
    """Return the steps of the guided tour: title, text, task and state.

    >>> len(tour_steps())
    6
    """
    text = asset("modules/steps.js").split(_STEPS, 1)[1]
    steps: list[dict[str, Any]] = json.loads(text.strip().removesuffix(";"))
    return steps


def _collect(name: str, ordered: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if name in above:
        raise ValueError(f"modules import each other: {' → '.join((*above, name))}")
    if name not in ordered:
        text = asset(f"modules/{name}.js")
        for _, other in _IMPORT.findall(text):
            _collect(other, ordered, (*above, name))
        ordered[name] = _wrapped(name, text)


def _wrapped(name: str, text: str) -> str:
    """Turn a module into a function; drop comments and indentation."""
    returned = ", ".join(part.strip("[]") for part in _EXPORT.findall(text))
    body = _IMPORT.sub(r"const \1 = $\2;\n", text)
    body = _INDENT.sub("\n", _COMMENT.sub("", _WORD.sub("", body))).strip()
    body = _GOES_ON.sub("", "\n".join(map(_squeezed, body.split("\n"))))
    return f"const ${name} = (() => {{\n{body}\nreturn {{ {returned} }};\n}})();\n"


def _squeezed(line: str) -> str:
    """Leave out blanks that say nothing."""
    parts = _STRING.split(line)
    if _WHOLE.search("".join(parts[::2])):
        return line
    parts[::2] = [_BLANKS.sub(r"\1\2", part) for part in parts[::2]]
    return "".join(parts)
