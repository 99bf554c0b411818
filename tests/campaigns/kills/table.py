"""The tables of docs/campaigns.md: ``python -m tests.campaigns.kills.table``."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.campaigns.markdown import markdown

_RESULTS = Path(__file__).parents[1] / "results" / "kills.json"
_COLUMNS = {
    "runs": "ends", "killed": "kills", "files": "files read", "torn": "torn", "lost": "lost",
    "different": "different", "unclear": "unclear", "orphans": "orphans",
    "refused": "one sentence", "leftovers": "temporary",
}  # fmt: skip
Row = dict[str, Any]


def tables(record: dict[str, Any]) -> str:
    """Write one table by command and one by event."""
    commands: dict[str, dict[str, Row]] = record["commands"]
    events: dict[str, list[Row]] = {}
    for own in commands.values():
        for event, row in own.items():
            events.setdefault(event, []).append(row)
    return "\n".join(
        [*_table("command", {name: list(own.values()) for name, own in commands.items()}), "",
         *_table("event", events)]
    )  # fmt: skip


def _table(head: str, groups: dict[str, list[Row]]) -> list[str]:
    rows = [_cells(name, own) for name, own in groups.items()]
    rows.append(_cells("all", [row for own in groups.values() for row in own]))
    return markdown([head, *_COLUMNS.values()], rows)


def _cells(name: str, rows: Iterable[Row]) -> list[str]:
    """Add up the rows; of temporary files, take the most."""
    found = list(rows)
    sums = {column: sum(row[column] for row in found) for column in _COLUMNS}
    sums["leftovers"] = max(row["leftovers"] for row in found)
    return [name, *(f"{value:,}" for value in sums.values())]


if __name__ == "__main__":
    path = Path(sys.argv[1]) if sys.argv[1:] else _RESULTS
    print(tables(json.loads(path.read_text(encoding="utf-8"))))
