"""Pages: complete, readable without the network, and true to the prediction."""

import re
from html import escape
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.data.demo_reviews import review_data
from attnmargin.plot.drawing import draw_panel
from attnmargin.plot.labels import place_names
from attnmargin.plot.panels import Panel, Series
from attnmargin.plot.prediction import token_panel
from attnmargin.plot.svg import embedded
from attnmargin.prediction.sentences import headline, verdict_sentence
from attnmargin.prediction.words import listing, name_tokens
from attnmargin.report.pages.demo import review_words
from attnmargin.report.pages.prediction import prediction_page
from attnmargin.training.measures import decided
from tests.test_composition import orthonormal
from tests.test_theory import contradiction, counterexample_to_theorem_4, identity_data

VOID = {"meta", "path", "use", "rect", "br"}


class Balanced(HTMLParser):
    """Counts open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> str:
    """The text of a page whose tags all close."""
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return " ".join(parser.text)


@pytest.fixture(scope="module")
def demo() -> tuple[am.Prediction, am.Confirmation]:
    prediction = am.predict(review_data())
    return prediction, am.confirm(prediction)


def test_the_demo_page_has_every_part(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    prediction, result = demo
    page = prediction_page(prediction, review_words(), result)
    text = parsed(page)
    for title in (
        "The words used here", "What attention will select", "By what margin", "How it looks",
        "Training confirms it", "Could it end elsewhere?", "Why: what the papers say",
        "The certificate", "Run it again, and cite it",
    ):  # fmt: skip
        assert title in text
    for check in prediction.checks:
        assert check.label in text
        assert check.meaning in text
    assert text.count("asked about “plot”, label −1 (bad)") >= 2
    assert "0.775" in text


def test_pages_need_no_network_and_pictures_have_words(
    demo: tuple[am.Prediction, am.Confirmation],
) -> None:
    prediction, result = demo
    page = prediction_page(prediction, review_words(), result)
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "<script" not in page
    assert "@import" not in page
    pictures = re.findall(r"<svg [^>]*>", page)
    assert len(pictures) == 8
    assert all('role="img"' in tag and "aria-label=" in tag for tag in pictures)
    assert page.count("<figcaption>") == 8
    assert "prefers-color-scheme: dark" in page
    assert "#010203" not in page  # ink takes the colour of the text


def test_same_prediction_same_page(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    prediction, result = demo
    first, second = (prediction_page(prediction, review_words(), result) for _ in range(2))
    assert first == second


def test_headlines() -> None:
    words = review_words()
    sure = am.predict(review_data())
    assert headline(sure, words).startswith("Attention will learn to select “dull”, “wonderful”")
    unsure = am.predict(counterexample_to_theorem_4())
    assert headline(unsure, name_tokens(unsure.data)) == (
        "Attention may learn to select token 0 of sequence 0 and token 0 of sequence 1: it depends "
        "on where training begins"
    )
    impossible = am.predict(contradiction())
    assert headline(impossible, name_tokens(impossible.data)).startswith("No attention weights can")


def test_verdicts_in_sentences() -> None:
    sure = verdict_sentence(am.predict(identity_data()))
    assert sure.startswith("Guaranteed: training by gradient descent that begins at zero, with a")
    assert "only this one is stable, and there is no point of rest" in sure
    unsure = verdict_sentence(am.predict(counterexample_to_theorem_4()))
    assert "Of all 4 ways to choose" in unsure
    assert "1 other choice is stable too" in unsure
    guess = verdict_sentence(am.predict(identity_data(), parameter="KQ"))
    assert guess.startswith("Conjectured: ")
    limited = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1), limit=100)
    assert "Of 100 of 3,125 ways" in verdict_sentence(limited)
    mixed = am.predict(
        orthonormal(1, 5)[0], head=am.heads.QuadraticHead(orthonormal(1, 5)[0].v, 0.4)
    )
    assert "mixtures of tokens" in verdict_sentence(mixed)


@pytest.mark.parametrize("how", [{}, {"parameter": "KQ"}, {"p": 3.0}])
def test_pages_of_wide_and_flat_tokens(how: dict[str, object]) -> None:
    for d in (1, 2, 5):
        data = am.random_data(2, 3, d, name="page", distribution="gaussian")
        prediction = am.predict(data, **how)  # type: ignore[arg-type]
        text = parsed(prediction_page(prediction, result=am.confirm(prediction, steps=50)))
        assert "sequence 1" in text


def test_a_page_of_mixtures() -> None:
    data = orthonormal(1, 5)[0]
    prediction = am.predict(data, loss="linear", head=am.heads.QuadraticHead(data.v, 0.4))
    text = parsed(prediction_page(prediction, result=am.confirm(prediction, steps=200)))
    assert "W_fin" in text
    assert "Lemma 6" in text


def test_odd_words_are_plain_text() -> None:
    """Dollar signs are no formulas, and a font without a letter is no error."""
    data = am.random_data(1, 3, 4, name="odd")
    words = name_tokens(data, [["$\\frac{a}$", "$x_{$", "字"]], ["costs $5 & <more>"])
    text = parsed(prediction_page(am.predict(data), words))
    assert "costs $5 & <more>" in text


def test_ids_are_unique(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    prediction, result = demo
    page = prediction_page(prediction, review_words(), result)
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) > 100
    assert len(set(names)) == len(names)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)


def test_a_hidden_sequence_is_not_drawn() -> None:
    data = am.random_data(2, 3, 4, name="hidden")
    mask = [[True, True, True], [False, False, False]]
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, mask)
    page = prediction_page(am.predict(hidden))
    assert page.count("<svg ") == 1
    assert "nan" not in parsed(page)


def test_an_infeasible_page_has_no_empty_numbers() -> None:
    prediction = am.predict(contradiction())
    text = parsed(prediction_page(prediction, result=am.confirm(prediction, steps=20)))
    assert "nan" not in text
    assert "correlation with W_mm" not in text
    assert "rank = " not in text


@given(st.lists(st.tuples(st.floats(65, 160), st.floats(45, 145)), min_size=1, max_size=4))
def test_names_of_points_do_not_cover_each_other(points: list[tuple[float, float]]) -> None:
    names = ["brilliant", "a", "music", "the"][: len(points)]
    corners = np.array(points) + place_names(np.array(points), names, (225.0, 192.0))
    tops = corners + [[5.8 * len(name), 11.0] for name in names]
    for i, j in combinations(range(len(points)), 2):
        shared = np.minimum(tops[i], tops[j]) - np.maximum(corners[i], corners[j])
        assert shared.min() <= 1e-9


def test_weights_that_rest_at_zero_select_nothing() -> None:
    """Two sequences that pull against each other: no token is more likely than another."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 1.0]] * 2, [1, -1], [1.0, -1.0])
    prediction = am.predict(data)
    result = am.confirm(prediction, steps=20)
    assert [bool(x) for x in (result.decided, result.agrees, result.listed)] == [False] * 3
    assert result.explain().startswith("training selects nothing")
    text = parsed(prediction_page(prediction, result=result))
    assert "Training rests" in text
    assert "stable choices below" not in text


def test_ties_that_no_weights_can_break_do_not_count() -> None:
    """A zero query, and a sequence that holds its best token twice."""
    data = am.random_data(4, 4, 8, name="tied")
    still, X = data.z.clone(), data.X.clone()
    still[0] = 0.0
    best = int(am.optimal_tokens(data)[0])
    X[0, (best + 1) % 4] = X[0, best]
    for tied in (am.AttentionData(data.X, still, data.y, data.v),
                 am.AttentionData(X, data.z, data.y, data.v)):  # fmt: skip
        run = am.train(tied, steps=2000, record=2000)
        assert [bool(decided(tied, W)) for W in run.W] == [False, True]
    many = am.random_data(2, 5000, 4, name="many")
    assert bool(decided(many, am.train(many, steps=3, record=3).W[-1]))


def test_a_long_first_step_is_told_where_the_start_matters() -> None:
    for k in range(40):
        prediction = am.predict(am.random_data(5, 4, 6, name=f"step{k}"))
        long = prediction.check("A: Theorem 6")
        if prediction.verdict == am.Verdict.DEPENDS and long.outcome == am.theory.Outcome.HOLDS:
            length = float(long.numbers["length of a first step that suffices"])
            assert f"a first step of length {length:.3g}" in verdict_sentence(prediction)
            return
    pytest.fail("no instance of that kind")


@pytest.mark.parametrize(("how", "norm"), [({}, ""), ({"parameter": "KQ"}, " --norm nuc"),
                                           ({"p": 3.0}, " --norm 3"),
                                           ({"p": 1.2345678}, " --norm 1.2345678")])  # fmt: skip
def test_the_page_tells_how_to_make_it_again(how: dict[str, object], norm: str) -> None:
    data = am.random_data(2, 3, 4, name="again")
    page = prediction_page(am.predict(data, **how), command="made so", file="my data.npz")  # type: ignore[arg-type]
    code = f"made so\nattnmargin solve 'my data.npz'{norm} --out solution.npz\nattnmargin verify"
    assert escape(code) in page


def test_a_page_of_many_sequences_stays_short() -> None:
    data = am.random_data(60, 3, 80, name="many")
    page = prediction_page(am.predict(data, limit=64))
    assert "… and 20 more sequences." in page
    assert page.count("<svg ") == 6


def test_panels_show_the_margin_where_it_is() -> None:
    """In the projection, support tokens lie exactly one margin below the selected token."""
    data = am.random_data(3, 4, 6, name="panel")
    prediction = am.predict(data)
    for i in range(3):
        panel = token_panel(prediction, name_tokens(data), i, None)
        lines = [series for series in panel["series"] if series["kind"] == "endless"]
        for line, marker in zip(lines, ("*", "ring"), strict=True):
            points = next(s for s in panel["series"] if s.get("marker") == marker)
            assert len(points["x"]) > 0
            way = np.array([np.diff(line["x"])[0], np.diff(line["y"])[0]])
            off = way[0] * (points["y"] - line["y"][0]) - way[1] * (points["x"] - line["x"][0])
            np.testing.assert_allclose(off, 0.0, atol=1e-9)


def test_listing() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(list("abcdef"), most=4) == "a, b, c and 3 more"


def test_names_must_fit() -> None:
    data = am.random_data(2, 3, 4, name="names")
    with pytest.raises(am.InputError, match=r"words: got 2 rows of \[2\] names; needs 2 rows of 3"):
        name_tokens(data, [["a", "b"]] * 2)


def test_pictures_are_deterministic_text() -> None:
    line = Series(kind="line", name="a", x=np.arange(3.0), y=np.arange(1.0, 4.0))
    panel = Panel(title="t", axes=("x", "y"), logarithmic=(False, True), series=[line])
    first, second = (embedded(draw_panel(panel), "a < b") for _ in range(2))
    assert first == second
    assert 'aria-label="a &lt; b"' in first
