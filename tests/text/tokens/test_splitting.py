"""Words of texts, forms and pairs, against a plain implementation."""

import re
from html import unescape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.text.pieces import word_of
from attnmargin.text.tokens.cleaning import Cleaned, clean_corpus
from attnmargin.text.tokens.splitting import split_texts


def plainly(text: str, markup: bool) -> list[str]:
    plain = unescape(re.sub(r"</?[A-Za-z!][^<>]*>", " ", text)) if markup else text
    word = word_of(r"[^\W_]", plain)
    return re.findall(f"{word}(?:'{word})*", plain.lower().replace("’", "'"))


PARTS = ["good", "Good's", "it’s", "'tis", "a_b", "x-y", "café", "NAÏVE", "½", "é'a", "<br />",
         "<3", "</p", "<!--x-->", "&amp;", "&lt;b&gt;", "&", "’", "…", "“q”", "İyi", "film",
         "अच्छी", "e\u0301", "ß", "µm", " ", "\n", "—", "😀", "K", "<", ">", "''"]  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=8), max_size=5), st.booleans())
def test_words_are_those_of_the_regular_expression(parts: list[list[str]], markup: bool) -> None:
    texts = ["".join(own) for own in parts]
    found = split_texts(texts, markup)
    words = [[found.vocabulary[k] for k in found.ids[a:b]]
             for a, b in zip(found.start[:-1], found.start[1:], strict=True)]  # fmt: skip
    assert words == [plainly(text, markup) for text in texts]
    assert found.vocabulary == list(dict.fromkeys(word for row in words for word in row))


def test_many_words_in_many_runs() -> None:
    texts = [" ".join(f"w{k * k % 9001}" for k in range(i, i + 50)) for i in range(0, 9000, 30)]
    texts[100], texts[200] = texts[100] + " यह", "…" + texts[200]
    done: list[int] = []
    found = split_texts(texts, True, lambda k, total: done.append(k))
    assert [found.vocabulary[k] for k in found.ids] == [w for t in texts for w in plainly(t, True)]
    assert done[-1] == len(texts) == len(found.start) - 1


@pytest.mark.parametrize("tail", ["", " यह"])
def test_phrases_end_at_punctuation_and_tags(tail: str) -> None:
    found = split_texts([f"a b-c, d. e<br />f _g “h” i{tail}"], True)
    near = dict(zip([found.vocabulary[k] for k in found.ids], found.close.tolist(), strict=True))
    assert [word for word, close in near.items() if close][:3] == ["b", "c", "g"]


def cleaned(*texts: str, **steps: object) -> Cleaned:
    own = am.text.Corpus(list(texts), np.zeros(len(texts), np.int64), ("neg", "pos"))
    return clean_corpus(own, am.text.Cleaning(**{"least": 1, **steps}))  # type: ignore[arg-type]


def test_tokens_are_shown_as_their_most_frequent_word() -> None:
    found = cleaned("Awful awfully awful", "terribly terrible terribly plots")
    assert found.pieces.vocabulary == ["aw", "terribl", "plot"]
    assert found.forms.shown == ["awful", "terribly", "plots"]
    assert found.forms.words[1] == ["terribly", "terrible"]


def test_pairs_skip_stop_words_but_keep_negations() -> None:
    found = cleaned("This isn't a very good film, not at all. Good films!", pairs=True)
    assert found.pieces.vocabulary == ["good", "film", "good film", "not good"]
    assert found.pieces.words(0) == ["good", "film", "good", "film", "not good", "good film",
                                     "good film"]  # fmt: skip
    assert found.forms.shown[2:] == ["good film", "isn't good"]
    assert found.forms.words[2] == ["good film", "good films"]
    assert found.steps[-1] == ("pairs of words added", 7, 4)


def test_pairs_are_of_frequent_words_of_one_text() -> None:
    found = cleaned("big cat", "big cat", "big rare cat", "cat", "big", pairs=True, least=2)
    assert found.pieces.vocabulary == ["big", "cat", "big cat"]
    assert [found.pieces.words(i)[-1] for i in range(5)] == ["big cat", "big cat", "cat", "cat",
                                                             "big"]  # fmt: skip
    every = cleaned("it is not good", pairs=True, stop_words=False, stem=False)
    assert every.pieces.vocabulary[4:] == ["it is", "is not", "not good"]
    with pytest.raises(am.InputError, match="pairs: got word pieces; needs whole words"):
        am.text.Cleaning(pairs=True, vocabulary="vocab.txt")
