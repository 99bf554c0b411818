"""Pages in a browser: for every reader, on every screen and on paper, without the network."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnmargin as am
from attnmargin.report.pages.demo import review_words
from attnmargin.report.pages.explorer import write_explorer
from attnmargin.report.pages.prediction import write_prediction
from tests.browser import MODULES, Visit
from tests.commands import command, write
from tests.models.instances import REVIEWS, minilm, small_model
from tests.texts import one_word_decides

Visiting = Callable[..., Visit]
_AXE = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => `${id}: ${nodes[0].html}`))"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe-core."""
    path = MODULES / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.skip("axe-core is not installed (make setup installs it where npm is present)")
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def demo_page(
    demo: tuple[am.Prediction, am.Confirmation], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("demo") / "index.html"
    begin = {"scene": "sentences"}
    return write_prediction(path, demo[0], review_words(), demo[1], begin=begin)


def check(path: Path, visit: Visiting, axe: str) -> None:
    """Look at a page on screens of three widths, in the light and in the dark."""
    for width, scheme in ((1280, "light"), (390, "dark")):
        own = visit(path, width=width, color_scheme=scheme)
        assert overflow(own) <= 0
        own.page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
        assert overflow(own) <= 0
        own.page.evaluate(axe)
        assert own.page.evaluate(_AXE) == []
        own.page.set_viewport_size({"width": 768, "height": 800})
        assert overflow(own) <= 0
        assert (own.errors, own.requests) == ([], [])


def overflow(own: Visit) -> int:
    """By how many pixels a page is wider than its window."""
    return int(own.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def pages_on_paper(path: Path, visit: Visiting) -> int:
    own = visit(path).page.pdf(prefer_css_page_size=True)
    return len(re.findall(rb"/Type /Page\b", own))


def test_the_demo(demo_page: Path, visit: Visiting, axe: str) -> None:
    check(demo_page, visit, axe)


def test_the_demo_begins_with_the_explorer(demo_page: Path, visit: Visiting) -> None:
    page = visit(demo_page).page
    box = page.locator("#explorer").bounding_box()
    assert box is not None
    assert box["y"] < 300
    assert not page.locator(".still").is_visible()


def test_without_scripts_sentences_stand_still(demo_page: Path, visit: Visiting) -> None:
    page = visit(demo_page, java_script_enabled=False).page
    first = page.locator(".still .words").first
    assert first.is_visible()
    assert first.inner_text().startswith("the plot")
    assert first.locator("b.wins").inner_text().startswith("dull")
    assert first.locator("i.asks").inner_text().startswith("plot")


def test_the_demo_fits_on_three_sheets(demo_page: Path, visit: Visiting) -> None:
    assert pages_on_paper(demo_page, visit) <= 3


def test_the_keyboard_reaches_the_content_first(demo_page: Path, visit: Visiting) -> None:
    page = visit(demo_page).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_explorer(visit: Visiting, axe: str, tmp_path: Path) -> None:
    check(write_explorer(tmp_path / "page.html"), visit, axe)


@pytest.mark.parametrize("d", [2, 5])
def test_tokens_without_names(d: int, visit: Visiting, axe: str, tmp_path: Path) -> None:
    prediction = am.predict(am.random_data(4, 5, d, name="access"))
    check(write_prediction(tmp_path / "page.html", prediction), visit, axe)


def test_graphs(
    seven_file: Path, capsys: pytest.CaptureFixture[str], visit: Visiting, axe: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    command(capsys, "graph", seven_file, "--next", "e1 e3 e4 e2", "--html", page)
    check(page, visit, axe)


def reviews_table(path: Path) -> Path:
    own = one_word_decides()
    rows = [f"{text},{own.classes[y]}" for text, y in zip(own.texts, own.labels, strict=True)]
    return write(path, ["text,label", *rows])


@pytest.mark.parametrize(
    "words",
    [
        ("tokens", "--least", 1, "--epochs", 5),
        ("tokens", "--least", 1, "--statistics-only"),
        ("train-text", "--layers", 1, "--heads", 2, "--width", 16, "--hidden", 16, "--batch", 10,
         "--length", 32, "--device", "cpu", "--epochs", 2),
    ],
)  # fmt: skip
def test_corpora(
    words: tuple[Any, ...],
    capsys: pytest.CaptureFixture[str],
    visit: Visiting,
    axe: str,
    tmp_path: Path,
) -> None:
    name, *flags = words
    page = tmp_path / "page.html"
    command(capsys, name, reviews_table(tmp_path / "reviews.csv"), *flags, "--html", page)
    check(page, visit, axe)


def test_heads(
    capsys: pytest.CaptureFixture[str], visit: Visiting, axe: str, tmp_path: Path
) -> None:
    folder, page, tokenizer = tmp_path / "model", tmp_path / "page.html", minilm().tokenizer
    small_model("bert", vocab_size=tokenizer.vocab_size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    texts = write(tmp_path / "reviews.txt", list(REVIEWS))
    fast = ("--queries", 6, "--draws", 2)
    command(capsys, "heads", folder, texts, "--want", "previous", "--html", page, *fast)
    check(page, visit, axe)
