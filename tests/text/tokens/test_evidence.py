"""Evidence: tests and intervals of tokens, against closed forms, scipy and planted corpora."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, false_discovery_control, nchypergeom_fisher

import attnmargin as am
from attnmargin.text.tokens.chance import chance, length_odds


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.0, 1.0), st.floats(0.0, 1.0),
       st.floats(-1.5, 1.5))  # fmt: skip
def test_chance_is_that_of_the_noncentral_law(
    n0: int, n1: int, a: float, b: float, log: float
) -> None:
    total = round(a * (n0 + n1))
    low, high = max(0, total - n0), min(n1, total)
    k, odds = round(low + b * (high - low)), float(np.exp(log))
    law = nchypergeom_fisher(n0 + n1, n1, total, odds)
    below = float(law.cdf(k) - law.pmf(k) / 2.0)
    p, side = chance(np.array([k]), np.array([total]), np.array([n0, n1]), np.array([odds]))
    assert p[0] == pytest.approx(min(1.0, 2.0 * min(below, 1.0 - below)), abs=1e-10)
    if abs(below - 0.5) > 1e-8:
        assert side[0] == np.sign(below - 0.5)


def test_chance_of_many_texts_neither_overflows_nor_vanishes() -> None:
    k, total = np.array([30_000, 15_000]), np.array([30_000, 30_000])
    p, side = chance(k, total, np.array([500_000, 500_000]), np.ones(2))
    assert (side.tolist(), p[1]) == ([1, 0], pytest.approx(1.0))
    assert p[0] == 0.0 or p[0] < 1e-300


def test_longer_texts_have_more_words() -> None:
    lengths = np.zeros((101, 2), np.int64)
    lengths[50, 0], lengths[100, 1] = 1000, 1000
    rate = 0.002
    present = 1.0 - np.exp(-rate * np.array([50, 100]))
    odds = present / (1.0 - present)
    found = length_odds(np.array([round(1000 * present.sum())]), lengths)
    assert found[0] == pytest.approx(odds[1] / odds[0], rel=1e-3)
    lengths[:, 1] = lengths[:, 0]
    np.testing.assert_allclose(length_odds(np.arange(2001), lengths), 1.0)


def test_texts_of_other_lengths_make_no_evidence() -> None:
    """Words have the same rate in both classes, whose texts differ in length by a factor of two."""
    drawn = [am.text.planted_corpus(1500, words=300, deciding=2, length=length, strengths=[1e-9],
                                    seed=length).pieces for length in (30, 60)]  # fmt: skip
    ids = np.concatenate([own.ids for own in drawn])
    start = np.concatenate([drawn[0].start, drawn[0].start[-1] + drawn[1].start[1:]])
    labels = np.repeat([0, 1], 1500)
    pieces = am.text.Pieces(ids, start, labels, drawn[0].vocabulary)
    found = am.text.Evidence(am.text.count_texts(pieces))
    assert int(found.found.sum()) <= 2
    plain, _ = chance(found.counts.texts[:, 1].copy(), found.counts.texts.sum(1),
                      found.counts.sizes, np.ones(300))  # fmt: skip
    assert (plain < 0.01).mean() > 0.5


def planted(n: int = 3000) -> am.text.PlantedCorpus:
    return am.text.planted_corpus(n, words=2000, deciding=40, shares=0.3, length=40)


def test_planted_words_are_found_and_their_numbers_covered() -> None:
    own = planted()
    found = am.text.Evidence(am.text.count_texts(own.pieces))
    false = found.found & (own.deciding < 0)
    strong = (own.deciding >= 0) & (own.rates.max(0) / own.rates.min(0) > np.exp(2.0))
    assert false.sum() <= 2
    assert found.found[strong].mean() >= 0.9
    sides = np.where(own.deciding == 1, 1, -1)[found.found & ~false]
    assert (found.side[found.found & ~false] == sides).all()
    seen = found.counts.texts.sum(1) > 0
    for (low, high), truth in ((found.difference, own.difference()), (found.alpha, own.alpha())):
        covered = (low <= truth) & (truth <= high)
        assert covered[seen].mean() > 0.94


def test_adjusted_values_are_those_of_scipy() -> None:
    found = am.text.Evidence(am.text.count_texts(planted(300).pieces))
    seen = found.counts.texts.sum(1) > 0
    np.testing.assert_allclose(found.adjusted[seen], false_discovery_control(found.p[seen]))
    assert (found.adjusted[~seen] == 1.0).all()


def counts_of(texts: list[list[int]], labels: list[int], S: int) -> am.text.TextCounts:
    start = np.cumsum([0, *map(len, texts)])
    ids = np.array([s for text in texts for s in text], np.int64)
    return am.text.count_texts(
        am.text.Pieces(ids, start, np.array(labels), [str(s) for s in range(S)]), max(labels) + 1
    )


def test_single_occurrences_have_jeffreys_interval() -> None:
    texts = [[0], [0], [0], [1], [1]]
    found = am.text.Evidence(counts_of(texts, [1, 1, 0, 0, 1], 3), level=0.1)
    low, high = (end[0] for end in found.difference)
    assert low == pytest.approx(2 * beta(2.5, 1.5).ppf(0.05) - 1)
    assert high == pytest.approx(2 * beta(2.5, 1.5).ppf(0.95) - 1)
    assert np.isnan(found.difference[0][2])


def test_repetitions_within_texts_widen_intervals() -> None:
    once = am.text.Evidence(counts_of([[0]] * 8, [1, 0] * 4, 1))
    often = am.text.Evidence(counts_of([[0] * 5] * 8, [1, 0] * 4, 1))
    for name in ("difference", "alpha"):
        for one, other in zip(getattr(once, name), getattr(often, name), strict=True):
            np.testing.assert_allclose(one, other)


def test_counts_of_every_class_against_the_rest() -> None:
    counts = counts_of([[0, 0, 1], [1], [1, 2], [0]], [0, 1, 2, 2], 3)
    assert counts.occurrences.tolist() == [[2, 0, 1], [1, 1, 1], [0, 0, 1]]
    assert counts.squares.tolist() == [[4, 0, 1], [1, 1, 1], [0, 0, 1]]
    with pytest.raises(am.InputError, match="classes: got 1 for labels up to 1; needs one more"):
        am.text.count_texts(planted(10).pieces, 1)
    own = counts.against(2)
    assert own.texts.tolist() == [[1, 1], [2, 1], [0, 1]]
    assert own.sizes.tolist() == [2, 2]
    with pytest.raises(am.InputError, match="counts: got 3 classes; needs one class against"):
        am.text.Evidence(counts)
    with pytest.raises(am.InputError, match="level: got 2; needs a number between 0 and 1"):
        am.text.Evidence(own, level=2)


def test_planted_rates_are_those_of_the_texts() -> None:
    own = am.text.planted_corpus(4000, words=50, deciding=6, shares=[0.2, 0.3, 0.5], length=50)
    counts = am.text.count_texts(own.pieces, 3)
    assert counts.sizes.tolist() == [800, 1200, 2000]
    found = counts.occurrences / counts.occurrences.sum(0)
    np.testing.assert_allclose(found.T, own.rates, atol=0.004)
    np.testing.assert_allclose(own.rates.sum(1), 1.0)
    same = own.deciding < 0
    assert (np.ptp(own.rates[:, same], axis=0) < 1e-15).all()
    assert np.bincount(own.deciding[~same]).tolist() == [2, 2, 2]
    two = counts.against(2)
    signed = (two.occurrences[:, 1] - two.occurrences[:, 0]) / two.occurrences.sum()
    np.testing.assert_allclose(signed, own.alpha(2), atol=0.004)
    again = am.text.planted_corpus(4000, words=50, deciding=6, shares=[0.2, 0.3, 0.5], length=50)
    assert again.pieces.digest() == own.pieces.digest()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shares": 1.5}, "shares: got 1.5; needs positive shares"),
        ({"deciding": 3}, "deciding: got 3 of 20000 words; needs a multiple of 2"),
        ({"burst": 1.0}, "burst: got 1.0; needs a probability below 1"),
    ],
)
def test_planted_corpora_that_cannot_be(options: dict[str, float], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.text.planted_corpus(10, **options)  # type: ignore[arg-type]
