"""The tables of docs/campaigns.md: ``python -m tests.campaigns.fuzz.table``."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.campaigns.fuzz.run import joined
from tests.campaigns.markdown import markdown

_RESULTS = Path(__file__).parents[1] / "results" / "fuzz.json"
_COLUMNS = {
    "executions": "files", "answer": "answers", "sentence": "one sentence", "defect": "defects",
    "causes": "causes", "cpu_minutes": "CPU minutes", "peak_mib": "MiB at most",
}  # fmt: skip
Row = dict[str, Any]


def tables(record: dict[str, Any]) -> str:
    """Write one table by reader for every run."""
    parts = []
    for name, run in record["runs"].items():
        where = f"{run['date']}, {run['engine']}, Python {run['python']}, {run['machine']}"
        parts.append("\n".join([f"**{name}** ({where})", "", *_table(run["readers"])]))
    return "\n\n".join(parts)


def _table(readers: dict[str, Row]) -> list[str]:
    rows = {**readers, "all": joined(list(readers.values()))}
    return markdown(
        ["reader", *_COLUMNS.values()], [[name, *_cells(row)] for name, row in rows.items()]
    )


def _cells(row: Row) -> list[str]:
    """Write the numbers of a row; causes are places in the source, each with many files."""
    own = row | {"causes": len(row["defects"])}
    return [f"{own[name]:,}" for name in _COLUMNS]


if __name__ == "__main__":
    path = Path(sys.argv[1]) if sys.argv[1:] else _RESULTS
    print(tables(json.loads(path.read_text(encoding="utf-8"))))
