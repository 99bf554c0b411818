"""Files that several rooms read, and one thread per worker."""

import json
from pathlib import Path

import pytest

import attnmargin as am
from attnmargin.papers.c.graphs import SEQUENCES
from tests.commands import write


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return am.random_data(4, 5, 6, name="cli").save(tmp_path / "data.npz")


@pytest.fixture
def seven_file(tmp_path: Path) -> Path:
    rows = [json.dumps({"tokens": x, "next": y}) for x, y in SEQUENCES]
    return write(tmp_path / "seven.jsonl", rows)
