"""Files of sequences."""

from pathlib import Path

import numpy as np

import attnmargin as am
from attnmargin.papers.c.graphs import SEQUENCES
from tests.commands import write


def test_files_of_both_kinds_say_the_same(seven_file: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "seven.txt", [" ".join((*x, y)) for x, y in SEQUENCES])
    first, second = am.graphs.read_graphs(seven_file), am.graphs.read_graphs(text)
    np.testing.assert_array_equal(first.component, second.component)
    assert first.vocabulary.names == second.vocabulary.names == ["e2", "e3", "e1", "e4"]
