"""The building blocks of a page: frame, style, tables and figures."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from attnmargin.base.files import write_whole
from attnmargin.base.words import allowed
from attnmargin.plot.styles import short_style
from attnmargin.plot.svg import Markup


def page(title: str, body: str, style: str = "") -> str:
    """Build a self-contained page, which loads nothing from elsewhere."""
    sheet = (files("attnmargin.report.pages") / "page.css").read_text("utf-8") + style
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{short_style(sheet)}</style></head>"
        '<body><a class="skip" href="#main">Skip to the content</a>'
        f'<main id="main" tabindex="-1"><h1>{escape(title)}</h1>{body}</main></body></html>\n'
    )


def table(head: list[str], rows: list[list[str]], wide: bool = False, dense: bool = False) -> str:
    """Build a table of plain text, or of cells as :class:`Markup`; on narrow screens it scrolls.

    Args:
        wide: on narrow screens, show a list with a line per cell instead.
        dense: on narrow screens, show a paragraph per row instead.
    """
    top = "".join(f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in head)
    body = "".join(f"<tr>{_cells(head, row)}</tr>" for row in rows)
    inside = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    if wide or dense:
        return f'<table class="{"wide" if wide else "dense"}">{inside}'
    return scrolling(f"<table>{inside}", f"Table: {', '.join(filter(None, head))}")


def scrolling(content: str, name: str) -> str:
    """Let wide content scroll in a box of its own, which the keyboard reaches."""
    label = f'role="group" aria-label="{escape(name)}"'
    return f'<div class="scroll" tabindex="0" {label}>{content}</div>'


def _cells(head: list[str], row: list[str]) -> str:
    """Build the cells of a row, each with its column name for narrow screens."""
    first, *rest = row
    named = zip(head[1:], map(cell, rest), strict=True)
    named_row = first if isinstance(first, Markup) else f'<th scope="row">{escape(first)}</th>'
    return named_row + "".join(
        text.replace("<td", f'<td data-name="{escape(name)}"', 1) if name else text
        for name, text in named
    )


def cell(content: str, kind: str = "") -> Markup:
    """Build a table cell; one that is markup passes through unchanged."""
    if isinstance(content, Markup):
        return content
    return Markup(f"<td{f' class={kind!r}' if kind else ''}>{escape(content)}</td>")


def figure(picture: str, caption: str) -> str:
    """Build a picture with its caption."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def section(title: str, *parts: str) -> str:
    """Build a section: a heading and its parts."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def tabs(legend: str, parts: dict[str, str]) -> str:
    """Show one of several parts at a time, without a script; on paper, all of them."""
    choices = "".join(
        f'<input type="radio" name="tab" id="tab-{k}"{" checked" * (k == 0)}>'
        f'<label for="tab-{k}">{escape(name)}</label>'
        for k, name in enumerate(parts)
    )
    panels = "".join(
        f'<section class="panel" id="panel-{k}"><h2>{escape(f"{legend} {name}")}</h2>'
        f"{part}</section>"
        for k, (name, part) in enumerate(parts.items())
    )
    shown = ",".join(f"main:has(#tab-{k}:checked) #panel-{k}" for k in range(len(parts)))
    style = f"<style>{shown}{{display:block}}</style>"
    choice = f'<fieldset class="tabs"><legend>{escape(legend)}</legend>{choices}</fieldset>'
    return f"{style}{choice}{panels}"


def folded(summary: str, *parts: str, printed: bool = False) -> str:
    """Hide parts behind a line that opens them; on paper, show the parts or the line."""
    kind = ' class="paper"' if printed else ""
    return f"<details{kind}><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """Build a paragraph of plain text."""
    return f"<p{f' class={kind!r}' if kind else ''}>{escape(text)}</p>"


def terms(*texts: str) -> str:
    """Explain, in the last section of a page, the words that it uses."""
    inside = folded("In short", *map(paragraph, texts), printed=True)
    return section("The words used here", inside)


def json_script(name: str, value: Any) -> str:
    """Put a value into a page as JSON; text that looks like a tag cannot end the script."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    inert = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{inert}</script>'


def write_page(path: Path, text: str) -> Path:
    """Write a page; on failure, leave no partial file.

    Characters that pages may not hold become U+FFFD.
    """
    return write_whole(path, lambda stream: stream.write(allowed(text).encode()))
