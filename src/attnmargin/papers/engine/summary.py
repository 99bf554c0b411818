"""The results of a paper's figures as one page of text with pictures."""

import json
import math
from pathlib import Path
from typing import Any

from attnmargin.base.files import own_place, write_whole
from attnmargin.papers.engine.claims import Judgement
from attnmargin.report.numbers import short


def write_summary(out: Path, paper: str, names: list[str]) -> Path:
    """Write ``SUMMARY.md`` beside the figures of a paper: claims, numbers, times, pictures."""
    folder = out / paper
    files = [folder / name.split(":")[1] / "result.json" for name in names]
    records = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    text = "\n".join([*_head(paper, records), *(line for r in records for line in _part(r))])
    return write_whole(own_place(folder, "SUMMARY.md"), lambda stream: stream.write(text.encode()))


def _head(paper: str, records: list[dict[str, Any]]) -> list[str]:
    claims = [claim for record in records for claim in record["claims"]]
    held = tally([claim["verdict"] for claim in claims])
    seconds = sum(record["seconds"] for record in records)
    lines = [
        f"# Figures of paper {paper}",
        "",
        f"Written by `attnmargin reproduce {paper}`: {held}; "
        f"{sum(len(r['measurements']) for r in records)} further numbers are measured, "
        f"{seconds:.0f} s of computation.",
        "",
        "| figure | what | trials per point | seed | seconds | claims that hold |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for record in records:
        own = sum(claim["verdict"] == Judgement.HOLDS for claim in record["claims"])
        lines.append(
            f"| [{record['figure']}](#{_anchor(record)}) | {record['title']} | "
            f"{record['trials']} {record['unit']} | {record['seed']} | {record['seconds']:g} | "
            f"{own} of {len(record['claims'])} |"
        )
    return [*lines, ""]


def tally(verdicts: list[str]) -> str:
    """Say how many claims hold, and how many are undecided or fail.

    >>> tally(["holds", "holds", "undecided"])
    '2 of 3 claims hold, 1 is undecided'
    """
    counts = {word: verdicts.count(word) for word in Judgement}
    text = f"{counts[Judgement.HOLDS]} of {len(verdicts)} claims hold"
    if counts[Judgement.UNDECIDED]:
        number = counts[Judgement.UNDECIDED]
        text += f", {number} {'is' if number == 1 else 'are'} undecided"
    return text


def measured_words(claim: dict[str, Any]) -> str:
    """Write what was measured, with its standard error.

    >>> measured_words({"measured": 0.98771, "error": 0.0021})
    '0.9877 ± 0.0021'
    """
    value, error = claim["measured"], claim["error"]
    if value is None or not error:
        return short(value, ".6g")
    digits = max(1 - math.floor(math.log10(error)), 0)
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _anchor(record: dict[str, Any]) -> str:
    return str(record["figure"]).lower().replace(":", "")


def _part(record: dict[str, Any]) -> list[str]:
    """Write the part of one figure: its pictures and its claims."""
    name = record["figure"].split(":")[1]
    pictures = [Path(file).name for file in record["files"] if file.endswith(".png")]
    lines = [f"## {record['figure']}", "", record["title"], ""]
    lines += [f"![{record['title']}]({name}/{picture})" for picture in pictures]
    lines += ["", "| claim | measured | values | bound | |", "| --- | --- | --- | --- | --- |"]
    for claim in record["claims"]:
        word = claim["verdict"]
        word = word if word == Judgement.HOLDS else f"**{word}**"
        words = claim["claim"].replace("|", "\\|")
        count = "–" if claim["count"] is None else f"{claim['count']:,}"
        lines.append(f"| {words} | {measured_words(claim)} | {count} | {claim['bound']} | {word} |")
    own = record["measurements"]
    if own:
        lines += ["", "Measured, with nothing claimed about it:", ""]
        lines += [f"- {entry['what']}: {short(entry['measured'], '.6g')}" for entry in own]
    return [*lines, ""]
