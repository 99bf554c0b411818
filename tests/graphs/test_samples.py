"""Samples of any kind: arrays, lists, streams; one sentence for bad ones."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.instances import seven


def test_streams_arrays_and_names_give_the_same_graphs() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 9, (500, 5), generator=generator)
    labels = ids[:, 2]
    whole = am.token_graphs(ids, labels, 9)
    stream: Iterator[list[int]] = (row.tolist() for row in ids)
    kinds = [
        am.token_graphs(ids.numpy(), labels.numpy(), 9),
        am.token_graphs(stream, (int(y) for y in labels), 9, keep_samples=False),
        am.token_graphs(ids.tolist(), labels.tolist()),
        am.token_graphs([[f"t{k}" for k in row] for row in ids], [f"t{y}" for y in labels],
                        [f"t{k}" for k in range(9)]),
    ]  # fmt: skip
    for other in kinds:
        for name in ("last", "token", "source", "target", "component", "layer"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))
    assert kinds[1].samples is None


def test_chunks_of_a_stream_do_not_change_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnmargin.graphs import edges, samples

    whole = seven()
    monkeypatch.setattr(samples, "_CHUNK", 2)
    monkeypatch.setattr(edges, "_PENDING", 1)
    parts = seven()
    np.testing.assert_array_equal(whole.source, parts.source)
    np.testing.assert_array_equal(whole.component, parts.component)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0, 1], [1]], [0], 2), "labels: got 1, and more sequences"),
        (([[0, 1]], [0, 1], 2), "sequences: got 1, and more labels"),
        (([[0, 5]], [0], 2), "sequences: got the token id 5; needs ids from 0 to 1"),
        (([[0, -1]], [0], 2), "sequences: got the token id -1"),
        (([[0, 1]], [3], 2), "the token id 3"),
        (([[]], [0], 2), "no token in sequence 0"),
        (([], [], 2), "sequences: got no sequence"),
        ((["ab"], [0], 2), "a str as sequence 0"),
        (("ab", [0], 2), "sequences: got a str"),
        ((np.zeros((2, 3)), [0, 0], 2), "sequences: got float64 entries; needs whole numbers"),
        ((np.zeros((2, 3), int), [0], 2), r"labels: got shape \(1,\); needs one label"),
        ((np.zeros((2, 3, 1), int), [0, 0], 2), "sequences: got shape"),
        (([["a"]], ["b"], ["a"]), "the token 'b'; needs tokens of the vocabulary"),
        (([["a"]], ["a"], ["a", "a"]), "vocabulary: got the name 'a' twice"),
        (([["a"]], ["a"], 3), "the token 'a'; needs ids from 0 to 2"),
        (([[0]], [0], 0), "vocabulary: got 0 tokens"),
        (([[0]], [0], 1 << 21), "vocabulary: got 2097152 tokens"),
        (([[0]], [0], 2.5), "vocabulary: got 2.5; needs a size"),
        (([[0]], [0], ["a", ["b"]]), r"vocabulary: got the token \['b'\]"),
        (([["a", ["b"]]], ["a"]), "sequences: got a list as a token"),
        (([["a", None]], ["a"]), "sequences: got the token None; needs words or whole numbers"),
        (([[True, False]], [True], 2), "sequences: got the token True; needs ids"),
        (([[0, 2**70]], [0], 2), "sequences: got the token id 1e"),
        (([[0, 1]], [5], 2), "labels: got the token id 5"),
        (([[2, 1]], [0], [1, 2, 3]), "labels: got the token 0; needs tokens of the vocabulary"),
        (([np.zeros((2, 2), int)], [0], 2), r"sequences\[0\]: got shape \(2, 2\)"),
        (([[0, 1]], {0}, 2), "labels: got a set"),
        ((np.ma.array([[0, 1]]), [0], 2), "sequences: got a MaskedArray"),
        ((torch.zeros(1, 2, dtype=torch.int64).to_sparse(), [0], 2), "sequences: got a Tensor"),
    ],
)
def test_bad_data_get_one_sentence(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.token_graphs(*arguments)
