"""Token ids: word pieces, caches, errors."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import BertWordPieceTokenizer

import attnmargin as am
from attnmargin.text.pieces import SPECIAL, read_vocabulary
from tests.texts import TEXTS, corpus


def vocabulary(path: Path) -> Path:
    words = [*SPECIAL, "a", "won", "##derful", "film", "so", "bor", "##ing", "it", "is", ",", "!"]
    path.write_text("\n".join(words) + "\n")
    return path


def test_word_pieces_are_those_of_bert(tmp_path: Path) -> None:
    file = vocabulary(tmp_path / "vocab.txt")
    pieces = am.text.word_pieces(corpus(), file)
    other = BertWordPieceTokenizer(str(file), lowercase=True)
    for i, text in enumerate(TEXTS):
        ids = pieces.ids[pieces.start[i] : pieces.start[i + 1]].tolist()
        assert ids == other.encode(text).ids
    assert pieces.vocabulary == read_vocabulary(file)


def test_long_texts_are_cut_and_keep_their_ends() -> None:
    words = am.text.word_list(TEXTS)
    pieces = am.text.word_pieces(corpus(), words, length=4)
    assert pieces.lengths.tolist() == [4, 4, 4, 4]
    assert {words[k] for k in pieces.ids[pieces.start[:-1]]} == {"[CLS]"}
    assert {words[k] for k in pieces.ids[pieces.start[1:] - 1]} == {"[SEP]"}


def test_pieces_are_saved_taken_apart_and_cached(tmp_path: Path) -> None:
    words = am.text.word_list(TEXTS)
    pieces = am.text.word_pieces(corpus(), words, cache=tmp_path / "cache")
    (stored,) = (tmp_path / "cache").iterdir()
    again = am.text.word_pieces(corpus(), words, cache=tmp_path / "cache")
    np.testing.assert_array_equal(pieces.ids, again.ids)
    am.text.word_pieces(corpus(), words, length=5, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert am.text.Pieces.load(stored).vocabulary == words
    part = pieces.part(np.array([2, 0]))
    assert part.labels.tolist() == [1, 1]
    np.testing.assert_array_equal(part.ids[: part.start[1]], pieces.ids[slice(*pieces.start[2:4])])


def test_bad_vocabularies_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match=r"vocabulary: got .*, which does not exist"):
        am.text.word_pieces(corpus(), tmp_path / "none.txt")
    with pytest.raises(am.InputError, match=r"one without \[PAD\], \[UNK\], \[CLS\], \[SEP\]"):
        am.text.word_pieces(corpus(), ["a"])
    with pytest.raises(am.InputError, match="length: got 2; needs a whole number of at least 3"):
        am.text.word_pieces(corpus(), am.text.word_list(TEXTS), length=2)
