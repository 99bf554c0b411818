"""The table of docs/everywhere.md: ``python -m tests.campaigns.everywhere.table``."""

import json
import sys
from pathlib import Path
from typing import Any

_RESULTS = Path(__file__).parents[1] / "results" / "everywhere.json"
_PACKAGES = ("python", "torch", "numpy", "scipy", "numba")
_HEAD = ("setting", *_PACKAGES, "words", "numbers", "missing", "different", "furthest apart")


def table(record: dict[str, Any]) -> str:
    """Write one line for each setting."""
    rows: dict[str, dict[str, Any]] = record["rows"]
    lines = [_HEAD, ["---"] * len(_HEAD), *(_cells(name, own) for name, own in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(name: str, own: dict[str, Any]) -> list[str]:
    counts = [own["words"], own["numbers"], len(own["missing"]), len(own["wrong"])]
    apart = f"{own['worst']:.0e}" if own["worst"] else "0"
    versions = [str(own["versions"][package]) for package in _PACKAGES]
    return [name, *versions, *(f"{count:,}" for count in counts), apart]


if __name__ == "__main__":
    path = Path(sys.argv[1]) if sys.argv[1:] else _RESULTS
    print(table(json.loads(path.read_text(encoding="utf-8"))))
