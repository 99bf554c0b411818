"""Small corpora in which one word decides."""

import numpy as np

import attnmargin as am

TEXTS = ["A wonderful film, truly.", "So boring!", "wonderful, wonderful", "it is boring"]


LABELS = [1, 0, 1, 0]


def corpus() -> am.text.Corpus:
    """Four texts."""
    return am.text.Corpus(TEXTS, np.array(LABELS), ("0", "1"))


def one_word_decides(n: int = 60) -> am.text.Corpus:
    """Texts with one word that decides among words that do not."""
    rng = np.random.default_rng(0)
    words = ["film", "plot", "scene", "actor", "story"]
    labels = np.arange(n) % 2
    texts = []
    for y in labels:
        chosen = list(rng.choice(words, 5))
        chosen.insert(2, str(rng.choice(["superb", "lovely"] if y else ["dull", "awful"])))
        texts.append("The <br /> " + " ".join(chosen) + "!")
    return am.text.Corpus(texts, labels.astype(np.int64), ("neg", "pos"))


SMALL = {"layers": 2, "heads": 2, "width": 16, "hidden": 24, "length": 32}


def reviews(n: int = 80) -> am.text.Corpus:
    """Texts whose label is one word among others."""
    rng = np.random.default_rng(0)
    words = ["the", "a", "film", "plot", "scene", "actor", "very", "was"]
    labels = rng.integers(0, 2, n)
    texts = []
    for y in labels:
        chosen = list(rng.choice(words, rng.integers(3, 12)))
        chosen.insert(int(rng.integers(0, len(chosen))), "good" if y else "bad")
        texts.append(" ".join(chosen))
    return am.text.Corpus(texts, labels.astype(np.int64), ("neg", "pos"))


def pieces(n: int = 80) -> am.text.Pieces:
    own = reviews(n)
    return am.text.word_pieces(own, am.text.word_list(own.texts))


def shape(data: am.text.Pieces) -> am.text.Shape:
    return am.text.Shape(len(data.vocabulary), **SMALL)
