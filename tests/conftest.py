"""Files that several rooms read, and one thread per worker."""

import json
import os
from pathlib import Path

import pytest
import torch

import attnmargin as am
from attnmargin.data.demo_reviews import review_data
from attnmargin.papers.c.graphs import SEQUENCES
from tests.browser import browser, visit  # noqa: F401  fixtures
from tests.commands import write

if "PYTEST_XDIST_WORKER" in os.environ:  # one core each, for programs that a test starts as well
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return am.random_data(4, 5, 6, name="cli").save(tmp_path / "data.npz")


@pytest.fixture
def seven_file(tmp_path: Path) -> Path:
    rows = [json.dumps({"tokens": x, "next": y}) for x, y in SEQUENCES]
    return write(tmp_path / "seven.jsonl", rows)


@pytest.fixture(scope="session")
def demo() -> tuple[am.Prediction, am.Confirmation]:
    """The reviews of the demo: what is predicted, and what training says."""
    prediction = am.predict(review_data())
    return prediction, am.confirm(prediction)
