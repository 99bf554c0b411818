"""Pages: complete, readable without the network, and true to the prediction."""

import re
from html import escape
from html.parser import HTMLParser
from typing import Any

import pytest

import attnmargin as am
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.demo import review_words
from attnmargin.report.pages.prediction import prediction_page
from tests.instances import contradiction, orthonormal

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
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)


def parsed(page: str) -> str:
    """The text of a page whose tags all close."""
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return " ".join(parser.text)


def still(page: str) -> str:
    """A page without its scripts."""
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


@pytest.fixture(scope="module")
def page(demo: tuple[am.Prediction, am.Confirmation]) -> str:
    prediction, result = demo
    return prediction_page(prediction, review_words(), result)


def test_the_demo_page_has_every_part(
    demo: tuple[am.Prediction, am.Confirmation], page: str
) -> None:
    prediction, text = demo[0], parsed(page)
    for title in (
        "What your run will select", "Training confirms it", "How it looks", "By what margin",
        "Could it end elsewhere?", "Why: what the papers say",
        "The certificate", "Run it again, and cite it", "The words used here",
    ):  # fmt: skip
        assert title in text
    for check in prediction.checks:
        assert check.label in text
        assert check.meaning in text
    assert text.count("asked about “plot”, label −1 (bad)") >= 2
    assert "0.775" in text


def test_pages_need_no_network_and_pictures_have_words(page: str) -> None:
    page = still(page)
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "@import" not in page
    pictures = re.findall(r"<svg [^>]*>", page)
    assert len(pictures) == 8
    assert all('role="img"' in tag and "aria-label=" in tag for tag in pictures)
    assert page.count("<figcaption>") == 8
    assert "prefers-color-scheme: dark" in page
    assert "#010203" not in page  # ink takes the colour of the text


def test_same_prediction_same_page(demo: tuple[am.Prediction, am.Confirmation], page: str) -> None:
    prediction, result = demo
    assert prediction_page(prediction, review_words(), result) == page


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


def test_ids_are_unique(page: str) -> None:
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


def test_weights_that_rest_at_zero_select_nothing() -> None:
    """Two sequences that pull against each other: no token is more likely than another."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 1.0]] * 2, [1, -1], [1.0, -1.0])
    prediction = am.predict(data)
    result = am.confirm(prediction, steps=20)
    assert [bool(x) for x in (result.decided, result.agrees)] == [False] * 2
    assert result.explain().startswith("training selects nothing")
    text = parsed(prediction_page(prediction, result=result))
    assert "Training rests" in text


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


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ({"method": "steepest", "norm": "max"}, True),
        ({"method": "steepest", "norm": "sum"}, False),
        ({"method": "adam"}, False),
        ({"p": 3.0}, True),
    ],
)
def test_the_explorer_is_there_for_runs_that_it_can_show(how: dict[str, Any], shown: bool) -> None:
    data = am.random_data(2, 3, 2, name="shown")
    page = prediction_page(am.predict(data, steps=200, **how))
    assert ('id="explorer"' in page) is shown
    assert ('"norm":"max"' in page) is (how.get("norm") == "max")
