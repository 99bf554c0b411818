"""Tables of the fuzz campaign."""

import json
from pathlib import Path

from tests.campaigns.fuzz.run import joined
from tests.campaigns.fuzz.table import tables

ROOT = Path(__file__).parents[3]


def test_the_documents_show_the_results() -> None:
    """``python -m tests.campaigns.fuzz.table`` writes what docs/campaigns.md ends with."""
    record = json.loads((ROOT / "tests/campaigns/results/fuzz.json").read_text("utf-8"))
    text = (ROOT / "docs/campaigns.md").read_text("utf-8")
    assert text.endswith(f"\n\n{tables(record)}\n")


def test_rows_and_sums() -> None:
    row = {"executions": 1500, "answer": 1000, "sentence": 498, "defect": 2, "cpu_minutes": 1.5,
           "guided_executions": 0, "peak_mib": 300, "defects": {"slow": 2}}  # fmt: skip
    run = {"date": "d", "python": "3", "engine": "e", "machine": "m", "readers": {"npz": row}}
    lines = tables({"runs": {"first": run | {"readers": {"npz": row, "specs": row}}}}).split("\n")
    assert lines[0] == "**first** (d, e, Python 3, m)"
    assert lines[4] == "| npz | 1,500 | 1,000 | 498 | 2 | 1 | 1.5 | 300 |"
    assert lines[6] == "| all | 3,000 | 2,000 | 996 | 4 | 1 | 3.0 | 300 |"


def test_counts_of_processes_are_added_twice_over() -> None:
    part = {"executions": 5, "answer": 5, "guided": True, "peak_mib": 10.4, "defects": {"a": 1}}
    once = joined([part, part | {"guided": False, "peak_mib": 20.0}])
    assert (once["executions"], once["guided_executions"], once["peak_mib"]) == (10, 5, 20)
    twice = joined([once, once])
    assert (twice["executions"], twice["guided_executions"]) == (20, 10)
    assert twice["defects"] == {"a": 4}
