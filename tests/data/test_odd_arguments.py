"""Odd arguments get one sentence, whatever they are."""

from collections.abc import Callable

import numpy as np
import pytest

import attnmargin as am

CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: am.random_data(2, 2, 2, min_gap="x"), "min_gap: got 'x'"),  # type: ignore[arg-type]
    (lambda: am.random_data(2, 2, 2, min_gap=None), "min_gap: got None"),  # type: ignore[arg-type]
    (lambda: am.random_data(True, 2, 2), "n: got True; needs a whole number"),
    (lambda: am.random_data(10**30, 2, 2), "needs a whole number of at most"),
    (lambda: am.random_data(2, 2, 2, trials=[]), r"trials: got \[\]"),  # type: ignore[arg-type]
    (lambda: am.graphs.pseudo_graphs(None, [[1.0]], 3), "sequences: got None"),
    (lambda: am.graphs.pseudo_graphs(5, [[1.0]], 3), "sequences: got 5"),
    (lambda: am.graphs.pseudo_graphs([], [], 3), "sequences: got nothing"),
    (lambda: am.graphs.pseudo_graphs([0, 1], [[1.0]], 3), r"sequences: got \[0, 1\]"),
    (lambda: am.graphs.pseudo_graphs(np.zeros((0, 0), int), [], 3), "sequences: got nothing"),
    (lambda: am.embedding_problem(None, [[0]], [0]), "E: got"),
    (lambda: am.embedding_problem([[1.0]], None, [0]), "sequences: got"),
    (lambda: am.embedding_problem([[1.0]], [[0]], None), "selection: got"),
    (lambda: am.embedding_problem([[1.0]], [0, 0], [0]), "sequences: got shape"),
]


@pytest.mark.parametrize(("call", "words"), CASES)
def test_one_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        call()
