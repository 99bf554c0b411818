"""Cleaning of texts: words, stems, marks."""

from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.text.tokens.stop_words import STOP_WORDS


def pieces_of(*texts: str, **steps: object) -> list[list[str]]:
    own = am.text.Corpus(list(texts), np.zeros(len(texts), np.int64), ("neg", "pos"))
    found, _ = am.text.clean_tokens(own, am.text.Cleaning(**{"least": 1, **steps}))  # type: ignore[arg-type]
    return [found.words(i) for i in range(len(found))]


def test_words_are_found_as_a_person_would() -> None:
    plain = {"stop_words": False, "stem": False}
    assert pieces_of("It's GOOD, isn’t it?", **plain) == [["it's", "good", "isn't", "it"]]
    assert pieces_of("a_b c-d 10/10", **plain) == [["a", "b", "c", "d", "10", "10"]]
    assert pieces_of("one<br />two", **plain) == [["one", "two"]]
    assert pieces_of("one<br />two", **plain, markup=False) == [["one", "br", "two"]]
    assert pieces_of("", "...", **plain) == [[], []]


def test_stop_words_and_stems() -> None:
    assert pieces_of("It isn’t the film; isn't it?", stem=False) == [["film"]]
    assert pieces_of("loved loving loves lovely") == [["love", "love", "love", "love"]]
    assert "not" in STOP_WORDS


def test_word_pieces_come_after_stems(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bor", "##e", "film"]))
    assert pieces_of("boring films zzz", vocabulary=path) == [["bor", "##e", "film", "[UNK]"]]


def test_markup_entities_and_hearts() -> None:
    plain = {"stop_words": False, "stem": False}
    assert pieces_of("I <3 it. 9 > 5 &amp; don&#39;t", **plain) == [
        ["i", "3", "it", "9", "5", "don't"]
    ]
    assert pieces_of("film’s", stem=False) == pieces_of("film's", stem=False)


@pytest.mark.parametrize("text", ["फिल्म बहुत अच्छी है", "un cafe\u0301 noir", "ที่ น้ำ", "İyi film"])
def test_marks_stay_with_their_letters(text: str) -> None:
    words = text.lower().split()
    assert pieces_of(text, stop_words=False, stem=False) == [words]
    assert am.text.word_list([text])[4:] == words


def test_rare_tokens_go_and_steps_are_recorded() -> None:
    own = am.text.Corpus(["good good the bad", "good rare"], np.array([1, 0]), ("neg", "pos"))
    found, steps = am.text.clean_tokens(own, am.text.Cleaning(least=2))
    assert (found.words(0), found.words(1)) == (["good", "good"], ["good"])
    assert [(s.step, s.tokens, s.vocabulary) for s in steps] == [
        ("words", 6, 4), ("stop words removed", 5, 3), ("stems", 5, 3),
        ("seen at least 2 times", 3, 1),
    ]  # fmt: skip
    with pytest.raises(am.InputError, match="least: got 0"):
        am.text.Cleaning(least=0)
