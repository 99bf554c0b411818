"""The building blocks of a page: frame, style, tables and figures."""

import json
from html import escape
from pathlib import Path
from typing import Any

from attnmargin.base.files import write_whole

STYLE = """
:root { color-scheme: light dark; --line: #8885; --soft: #8882; --good: #00734f; --bad: #b04a00;
  --open: #6b6b6b; --pick: #b85000; }
@media (prefers-color-scheme: dark) {
  :root { --good: #43c79c; --bad: #ff9a57; --open: #a8a8a8; --pick: #ff9a57; } }
body { font: 1rem/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 64rem; padding: 1rem; }
h1 { font-size: 1.55rem; line-height: 1.25; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 44rem; }
.verdict { border-left: .35rem solid var(--open); background: var(--soft); padding: .6rem 1rem; }
.guaranteed { border-color: var(--good); }
.conjectured { border-color: var(--pick); }
.tokens { display: flex; flex-wrap: wrap; gap: .4rem; list-style: none; margin: 0; padding: 0; }
.tokens li { border: 1px solid var(--line); border-radius: .5rem; padding: .15rem .55rem;
  text-align: center; }
.tokens small { display: block; font-variant-numeric: tabular-nums; opacity: .8; }
.tokens .selected { border: 2px solid var(--pick); background: color-mix(in srgb, var(--pick) 18%,
  transparent); font-weight: 600; }
.tokens .support { border: 2px dashed currentColor; }
.pictures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); }
figure { margin: 0; }
figure svg { height: auto; max-width: 100%; }
figcaption { font-size: .9rem; opacity: .85; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .7rem .35rem 0; text-align: left;
  vertical-align: top; }
td.holds { color: var(--good); font-weight: 600; white-space: nowrap; }
td.fails { color: var(--bad); font-weight: 600; white-space: nowrap; }
td.open { color: var(--open); }
td:first-child { white-space: nowrap; }
table.wide td:first-child { white-space: normal; min-width: 8rem; }
td small { display: block; opacity: .8; }
code { overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--soft); padding: .6rem .8rem; border-radius: .4rem; }
summary { cursor: pointer; }
@media (max-width: 40rem) {
  table.wide, table.wide tbody, table.wide tr, table.wide td { display: block; }
  table.wide th { display: none; }
  table.wide td { border: 0; padding: .1rem 0; }
  table.wide tr { border-bottom: 1px solid var(--line); padding: .5rem 0; display: block; }
  table.wide td[data-name]:not(:empty)::before { content: attr(data-name) ": "; opacity: .7;
    font-weight: 400; color: initial; } }
"""


def page(title: str, body: str) -> str:
    """Build a self-contained page, which loads nothing from elsewhere."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def table(head: list[str], rows: list[list[str]], wide: bool = False) -> str:
    """Build a table of plain text; a wide one becomes a list on narrow screens."""
    kind = ' class="wide"' if wide else ""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{_cells(head, row)}</tr>" for row in rows)
    return f'<div class="scroll"><table{kind}><tr>{top}</tr>{body}</table></div>'


def _cells(head: list[str], row: list[str]) -> str:
    """Build the cells of a row, each with its column name for narrow screens."""
    named = zip(head, map(cell, row), strict=True)
    return "".join(
        text.replace("<td", f'<td data-name="{escape(name)}"', 1) if name else text
        for name, text in named
    )


def cell(content: str, kind: str = "") -> str:
    """Build a table cell; content that starts with ``<td`` passes through unchanged."""
    if content.startswith("<td"):
        return content
    return f"<td{f' class={kind!r}' if kind else ''}>{escape(content)}</td>"


def figure(picture: str, caption: str) -> str:
    """Build a picture with its caption."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def section(title: str, *parts: str) -> str:
    """Build a section: a heading and its parts."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str) -> str:
    """Build a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def json_script(name: str, value: Any) -> str:
    """Put a value into a page as JSON, in which text that looks like a tag cannot end the script."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    inert = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{inert}</script>'


def write_page(path: Path, text: str) -> Path:
    """Write a page; on failure, leave no partial file."""
    return write_whole(path, lambda stream: stream.write(text.encode()))
