"""The battery in small, and proof that the comparison sees what differs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.campaigns.everywhere.answers import answer
from tests.campaigns.everywhere.compare import compare, read_answers
from tests.campaigns.everywhere.place import Place
from tests.campaigns.everywhere.run import PROGRAM
from tests.campaigns.everywhere.table import table

_QUICK = ("draws", "mixed", "training", "selections", "graphs", "importance")
_OWN: dict[str, Any] = {
    "status": np.array(["optimal", "infeasible"]), "value": np.array([1.0, 1e6]),
    "loss": np.array([0.5, 0.25], np.float32),
}  # fmt: skip


def test_without_a_compiler_in_chunks_on_two_threads_the_answers_are_the_same(
    tmp_path: Path,
) -> None:
    out = tmp_path / "other.npz"
    setting = ["--threads", "2", "--chunk", "4", "--without", "numba", "--small"]
    parts = [word for part in _QUICK for word in ("--part", part)]
    other = subprocess.Popen([sys.executable, *PROGRAM, "--out", str(out), *setting, *parts])
    own = answer(Place(small=True), _QUICK)
    assert other.wait() == 0
    found = compare(own, read_answers(out))
    assert (found.wrong, found.missing) == ([], [])
    assert (found.answers, found.words > 500, found.numbers > 3000) == (len(own), True, True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": np.array(["optimal", "optimal"])},
         "status: 1 of 2 differ, as np.str_('optimal'), not np.str_('infeasible') at (1,)"),
        ({"value": np.array([1.0 + 2e-9, 1e6])}, "value: 2.0e-09 apart"),
        ({"value": np.array([1.0, np.inf])}, "value: inf apart"),
        ({"value": np.array([1.0])}, "value: shape (1,), not (2,)"),
        ({"loss": np.array([0.5, 0.2501], np.float32)}, "loss: 4.0e-04 apart"),
    ],
)  # fmt: skip
def test_a_difference_is_said(changes: dict[str, Any], said: str) -> None:
    assert compare(_OWN, {**_OWN, **changes}).wrong == [said]


def test_rounding_is_no_difference_and_what_is_not_answered_is_missing() -> None:
    found = compare(_OWN, {"status": _OWN["status"], "value": _OWN["value"] * (1.0 + 5e-10)})
    assert (found.wrong, found.missing) == ([], ["loss"])


def test_the_table_counts_what_was_compared() -> None:
    versions = dict.fromkeys(("python", "torch", "numpy", "scipy", "numba"), "1.0")
    own = {**compare(_OWN, {"status": _OWN["status"]}).record(), "versions": versions}
    (line,) = table({"rows": {"one": own}}).splitlines()[2:]
    assert line == "| one | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 2 | 0 | 2 | 0 | 0 |"
