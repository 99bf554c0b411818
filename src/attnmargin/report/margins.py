"""Margins in many norms as records, tables and a page."""

from pathlib import Path
from typing import Any

from attnmargin.plot.drawing import draw_picture
from attnmargin.plot.ratios import margins_picture, norm_words
from attnmargin.plot.svg import embedded
from attnmargin.report.numbers import number, short
from attnmargin.report.pages.html import figure, page, paragraph, section, table, write_page
from attnmargin.solvers.comparison import Margins

_TITLE = "One problem, many norms"
_ABOUT = (
    "Different optimisers maximise the margin in different norms. Each row is the solution in one "
    "norm; the columns say which share of the largest margin it reaches in every norm."
)
# Pictures on a page.
_MOST = 12


def margins_record(margins: Margins) -> dict[str, Any]:
    """Describe margins, ready for JSON."""
    names = [norm.name for norm in margins.norms]
    results = []
    for index in margins.solutions[0].problem.members():
        statuses = [solution[index].status for solution in margins.solutions]
        result = {
            "index": list(index),
            "status": dict(zip(names, map(str, statuses), strict=True)),
            "best": _named(names, margins.best[index]),
            "ratios": {
                name: _named(names, margins.ratios[index][i]) for i, name in enumerate(names)
            },
        }
        if margins.given is not None:
            result["given"] = _named(names, margins.given[index])
        results.append(result)
    settled = int(margins.optimal.sum())
    return {"norms": names, "problems": len(results), "settled": settled, "results": results}


def _named(names: list[str], values: Any) -> dict[str, float | None]:
    return dict(zip(names, map(number, values), strict=True))


def margin_rows(
    record: dict[str, Any], result: dict[str, Any]
) -> tuple[list[str], list[list[str]]]:
    """Write one result of a record as a table: its head and its rows."""
    names = record["norms"]
    head = ["solution in", "margin", *map(norm_words, names)]
    rows = [
        [norm_words(name), short(result["best"][name], ".4g"), *_shares(result["ratios"][name])]
        for name in names
    ]
    if "given" in result:
        rows.append(["given W", "", *_shares(result["given"])])
    return head, rows


def _shares(ratios: dict[str, float | None]) -> list[str]:
    return [short(ratio, ".3f") for ratio in ratios.values()]


def write_margins(path: Path, margins: Margins, record: dict[str, Any]) -> Path:
    """Write one self-contained page: a table and a heat map for every problem."""
    parts = [paragraph(_ABOUT)]
    for result in record["results"][:_MOST]:
        index = tuple(result["index"])
        one = Margins(
            margins.norms,
            tuple(solution[index] for solution in margins.solutions),
            margins.best[index],
            margins.ratios[index],
            None if margins.given is None else margins.given[index],
        )
        picture = margins_picture(one)
        drawn = embedded(draw_picture(picture | {"caption": ""}), picture["caption"])
        name = f"Problem {', '.join(map(str, index))}" if index else "Margins"
        parts.append(
            section(name, table(*margin_rows(record, result)), figure(drawn, picture["caption"]))
        )
    if len(record["results"]) > _MOST:
        parts.append(paragraph(f"… and {len(record['results']) - _MOST} more problems"))
    return write_page(path, page(_TITLE, "".join(parts)))
