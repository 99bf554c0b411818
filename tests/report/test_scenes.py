"""The explorer's scenes of sentences and of next tokens, in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnmargin.report.pages.explorer import write_explorer
from tests.browser import Visit

Visiting = Callable[..., Visit]


@pytest.fixture
def opened(visit: Visiting, tmp_path: Path) -> Visit:
    """Open the page of the explorer."""
    return visit(write_explorer(tmp_path / "page.html"))


def state(own: Visit) -> Any:
    """Return the state of the explorer."""
    return own.page.evaluate("attnmargin.state()")


def place(own: Visit) -> str:
    """Return what has the focus."""
    found: str = own.page.evaluate("document.activeElement.dataset.place ?? ''")
    return found


def test_words_ask_and_sentences_are_edited(opened: Visit) -> None:
    page = opened.page
    page.get_by_role("tab", name="Sentences").click()
    rows = page.locator(".sentences > li")
    words = rows.nth(0).locator(".words button")
    words.nth(3).click()
    shown = state(opened)
    assert (shown["sentences"][0]["query"], place(opened)) == (3, "w0.3")
    assert shown["data"]["z"][0] == shown["data"]["X"][0][3]
    assert [words.nth(t).get_attribute("aria-pressed") for t in (1, 3)] == ["false", "true"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert (state(opened)["sentences"][0]["query"], place(opened)) == (4, "w0.4")
    rows.nth(1).get_by_role("button", name="good").click()
    assert (state(opened)["data"]["y"][1], place(opened)) == (-1, "l1")
    rows.nth(2).get_by_role("button", name="edit").click()
    assert place(opened) == "f2"
    page.keyboard.type("terrible frobnication")
    words.nth(0).click()  # an edit in another sentence keeps the text
    rows.nth(2).locator("input").press("Enter")
    assert state(opened)["sentences"][2] == {
        "text": "terrible frobnication", "query": 1, "label": 1,
    }  # fmt: skip
    assert place(opened) == "e2"
    assert "unknown" in str(rows.nth(2).locator("button").nth(1).get_attribute("class"))
    rows.nth(2).get_by_role("button", name="edit").click()
    page.keyboard.type("nothing")
    page.keyboard.press("Escape")
    assert state(opened)["sentences"][2]["text"] == "terrible frobnication"
    rows.nth(5).get_by_role("button", name="remove").click()
    assert (len(state(opened)["sentences"]), place(opened)) == (5, "r4")
    page.get_by_role("button", name="add a sentence").click()
    assert (len(state(opened)["sentences"]), place(opened)) == (6, "f5")
    for _ in range(2):
        page.get_by_role("button", name="add a sentence").click()
    assert page.get_by_role("button", name="add a sentence").is_disabled()
    assert (opened.errors, opened.requests) == ([], [])


def test_attention_is_drawn_on_the_words(opened: Visit) -> None:
    page = opened.page
    page.get_by_role("tab", name="Sentences").click()
    row = page.locator(".sentences > li").nth(0)
    shares = row.locator(".word").evaluate_all(
        "words => words.map((word) => Number(word.style.getPropertyValue('--a')))"
    )
    assert shares == pytest.approx([0.125] * 8)
    look = page.evaluate("(({shown, support}) => ({shown, support}))(attnmargin.look())")
    names = row.locator(".word").evaluate_all("words => words.map((word) => word.className)")
    assert [t for t, name in enumerate(names) if "selected" in name] == [look["shown"][0]]
    assert ["support" in name for name in names] == look["support"][0]
    page.get_by_role("button", name="one step on").click()
    dull = row.get_by_role("button", name="dull: selected, best")
    assert float(dull.evaluate("word => word.style.getPropertyValue('--a')")) > 0.125


def test_the_graph_follows_its_text(opened: Visit) -> None:
    page = opened.page
    page.get_by_role("tab", name="Next tokens").click()
    text = page.get_by_label("Contexts, and the token that came next")
    question = page.get_by_label("What comes next after")
    assert question.input_value() == text.input_value().splitlines()[0].split(" -> ")[0]
    text.fill("a b c -> b\nc a b -> c\nd e -> f")
    assert page.locator(".graph-scene .problem").inner_text() == (
        "Line 3 chooses “f”, which is not among its tokens."
    )
    labels = page.locator(".tokengraph").evaluate_all("all => all.map((own) => own.ariaLabel)")
    assert labels == ["After “b”: c, then a and b", "After “c”: b, then a and c"]
    question.fill("a c b")
    assert page.locator(".graph-scene .answer").inner_text().startswith("“c”: it has priority")
    assert page.locator(".tokengraph .picked text").all_text_contents() == ["c"]
    assert state(opened)["graph"].startswith("a b c")
    text.fill("")
    assert page.locator(".tokengraph").count() == 0
    page.get_by_role("button", name="example").click()
    assert page.locator(".tokengraph").count() == 2
    assert (opened.errors, opened.requests) == ([], [])
