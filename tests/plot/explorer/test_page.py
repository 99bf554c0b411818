"""The page of the explorer in a real browser: what a visitor does, and what that does."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.plot.explorer.bundle import bundled, tour_steps
from attnmargin.plot.explorer.state import explorer_state, state_data
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.explorer import prediction_explorer, write_explorer
from attnmargin.report.pages.prediction import write_prediction
from tests.browser import Visit

Visiting = Callable[..., Visit]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_explorer(tmp_path / "page.html")


def _quiet(own: Visit) -> None:
    assert (own.errors, own.requests) == ([], [])


def _state(own: Visit) -> dict[str, Any]:
    state: dict[str, Any] = own.page.evaluate("attnmargin.state()")
    return state


def _step(own: Visit) -> int:
    text = own.page.locator(".player output").first.text_content() or ""
    return int(text.replace(",", ""))


def test_the_page_is_one_small_file(path: Path, visit: Visiting) -> None:
    assert path.stat().st_size < 200_000
    own = visit(path)
    assert own.page.get_by_role("heading", level=1).text_content() == "What will attention select?"
    _quiet(own)


def test_a_dragged_token_moves_and_the_answer_follows(path: Path, visit: Visiting) -> None:
    own = visit(path)
    before, said = _state(own), own.page.locator(".says").text_content()
    box = own.page.locator("[data-handle=token-0-0] path.token").bounding_box()
    target = own.page.locator("[data-handle=token-0-3] path.token").bounding_box()
    assert box is not None
    assert target is not None
    mouse = own.page.mouse
    mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    mouse.down()
    mouse.move(target["x"] - 20, target["y"] + 30, steps=8)
    mouse.up()
    after = _state(own)
    assert after["data"]["X"][0][0] != before["data"]["X"][0][0]
    assert after["data"]["X"][0][1:] == before["data"]["X"][0][1:]
    assert own.page.locator(".says").text_content() != said
    selected = own.page.evaluate("attnmargin.look().endings[0].selection")
    data = state_data(after)
    assert selected == am.predict(data).selection.tolist()
    _quiet(own)


def test_keys_move_and_remove_tokens(path: Path, visit: Visiting) -> None:
    own = visit(path)
    before = _state(own)["data"]["X"]
    own.page.locator("[data-handle=token-1-2]").focus()
    own.page.keyboard.press("ArrowRight")
    moved = _state(own)["data"]["X"]
    assert moved[1][2][0] > before[1][2][0]
    assert moved[1][2][1] == before[1][2][1]
    own.page.keyboard.press("Delete")
    assert len(_state(own)["data"]["X"][1]) == len(before[1]) - 1
    _quiet(own)


def test_labels_tokens_and_sequences_change(path: Path, visit: Visiting) -> None:
    own = visit(path)
    before = _state(own)["data"]
    own.page.locator("[data-flip]").first.click()
    assert _state(own)["data"]["y"] == [-before["y"][0], *before["y"][1:]]
    own.page.get_by_text("add a token").click()
    own.page.get_by_text("add a sequence").click()
    after = _state(own)["data"]
    assert [len(x) for x in after["X"]] == [len(before["X"][0]) + 1, *[len(before["X"][1])] * 2]
    own.page.get_by_text("remove sequence").click()
    assert len(_state(own)["data"]["X"]) == 2
    _quiet(own)


def test_play_steps_and_the_slider(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.get_by_role("button", name="one step on").click()
    assert _step(own) == 1
    own.page.get_by_role("button", name="▶ play").click()
    own.page.wait_for_function("parseInt(document.querySelector('.player output').textContent) > 5")
    own.page.get_by_role("button", name="pause").click()
    stopped = _step(own)
    own.page.wait_for_timeout(150)
    assert _step(own) == stopped
    own.page.get_by_role("button", name="back to the start").click()
    assert _step(own) == 0
    slider = own.page.locator(".player input").first
    slider.fill("4")
    own.page.wait_for_function("""
        document.querySelector('.player output').textContent.replace(',', '') === '9999'""")
    frames = own.page.evaluate("attnmargin.frames(9999).map((f) => [f.step, [...f.W]])")
    run = am.train(state_data(_state(own)), steps=9999, record=9999)
    W = torch.tensor(frames[0][1], dtype=torch.float64).reshape(2, 2)
    assert float((W - run.W[-1]).norm() / run.W[-1].norm()) < 1e-2  # drawn from a record nearby
    _quiet(own)


def test_a_far_step_is_reached_in_the_end(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator(".player input").first.fill("6")
    own.page.wait_for_function(
        "document.querySelector('.player output').textContent === '999,999'", timeout=60_000
    )
    own.page.get_by_role("button", name="back to the start").click()
    assert _step(own) == 0
    own.page.wait_for_timeout(100)
    assert _step(own) == 0
    _quiet(own)


def test_a_loss_that_is_not_in_the_list_is_shown(visit: Visiting, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    data = am.AttentionData([[[1.0, 0.2], [0.3, 0.9]]], [[1.0, 1.0]], [1], [0.6, 0.1])
    write_prediction(page, am.predict(data, loss="log", steps=100))
    own = visit(page)
    assert own.page.locator(".controls select").nth(1).input_value() == "log"
    _quiet(own)


def test_two_runs_side_by_side(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.get_by_text("compare two runs").click()
    assert own.page.locator(".verdict").count() == 2
    assert _state(own)["second"]["method"] == "mirror"
    own.page.get_by_role("button", name="one step on").click()
    assert own.page.locator(".trail.run1").count() >= 1
    own.page.get_by_text("one run", exact=True).click()
    assert own.page.locator(".verdict").count() == 1
    _quiet(own)


def test_the_map_of_starts_names_what_they_lead_to(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator(".tour .chip").nth(2).click()
    own.page.wait_for_function("document.querySelectorAll('.legend .box').length > 1")
    assert own.page.locator("image.map").count() == 1
    shares = own.page.locator(".plane-scene > .legend > span").all_text_contents()
    assert 90 <= sum(int(text.split()[-2]) for text in shares) <= 110
    _quiet(own)


def test_the_map_has_the_colours_of_its_legend(path: Path, visit: Visiting) -> None:
    """The start in the middle has the colour of what training from zero selects."""
    own = visit(path)
    own.page.locator(".tour .chip").nth(2).click()
    own.page.wait_for_function("document.querySelectorAll('.legend .box').length > 1")
    seen = own.page.evaluate(
        """async () => {
             const image = new Image();
             image.src = document.querySelector("image.map").getAttribute("href");
             await image.decode();
             const pen = document.createElement("canvas").getContext("2d");
             pen.drawImage(image, 0, 0);
             return [...pen.getImageData(image.width >> 1, image.height >> 1, 1, 1).data];
           }"""
    )
    end = own.page.locator(".choices .chip.end").inner_text().split(" ·")[0]
    box = own.page.locator(".plane-scene .legend > span").filter(has_text=end).locator(".box")
    colour = box.evaluate("(box) => box.style.background.match(/\\d+/g).map(Number)")
    assert seen[:3] == pytest.approx(colour, abs=3)  # colours are stored times their opacity


def test_curves_fall_as_the_loss_does(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator(".player input").first.fill("2")
    own.page.wait_for_function(
        "parseInt(document.querySelector('.player output').textContent) > 90"
    )
    for k in range(2):
        points = own.page.locator(".curve").nth(k).locator("polyline").get_attribute("points")
        places = [[float(x) for x in pair.split(",")] for pair in str(points).split()]
        assert places[-1][0] > places[0][0]
        assert places[-1][1] > places[0][1] + 20  # down the screen


def test_what_has_not_settled_leads_nowhere(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator(".tour .chip").nth(2).click()
    own.page.wait_for_function("document.querySelectorAll('.legend .box').length > 1")
    stable = own.page.locator(".choices .chip").all_text_contents()
    known = {text.split(" ·")[0] for text in stable}
    named = own.page.locator(".legend span:has(.box)").all_text_contents()
    assert {" ".join(text.split()[:-2]) for text in named} <= known
    assert own.page.get_by_text("pale: undecided").count() == 1


def test_contradictions_are_told_and_drawn(path: Path, visit: Visiting) -> None:
    """Without a direction, nothing is drawn in its place."""
    own = visit(path)
    own.page.evaluate(
        "attnmargin.set({data: {X: [[[1, 0], [2, 0]]], z: [[0, 0]], y: [1], v: [1, 0]}, focus: 0})"
    )
    assert "which cancel each other" in own.page.locator("p.direction").inner_text()
    assert own.page.locator(".margin, .level").count() == 0
    _quiet(own)


def test_a_repeated_word_does_not_contradict_itself(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.evaluate(
        """attnmargin.set({scene: "sentences", sentences: [
             {text: "great food and great service", query: 1, label: 1},
             {text: "dull plot but nice music", query: 1, label: -1}]})"""
    )
    margin = float(am.predict(state_data(_state(own))).margin)
    said = own.page.locator("p.direction").inner_text()
    assert said.startswith("No W of length one selects “great” and “dull” by more than ")
    assert f"{margin:.4g}" in said
    own.page.evaluate(
        "attnmargin.set({scene: 'plane', words: null, focus: 0, start: [0, 0, 0, 0],"
        " data: {X: [[[1, 0], [1, 0]]], z: [[1, 1]], y: [1], v: [1, 0]}})"
    )
    assert (
        own.page.locator("p.direction").inner_text() == "There is no other token than A1 to choose."
    )
    _quiet(own)


def test_many_sequences_have_names(visit: Visiting, tmp_path: Path) -> None:
    data = am.random_data(40, 10, 2, name="many")
    own = visit(write_explorer(tmp_path / "many.html", data))
    names = own.page.locator(".bars .sequence").all_text_contents()
    assert [names[k] for k in (0, 25, 26, 39)] == ["A", "Z", "AA", "AN"]
    verdict = own.page.locator(".verdict").text_content() or ""
    assert "and 29 more" in verdict
    assert own.page.get_by_text("add a token").is_disabled()
    assert own.page.get_by_text("add a sequence").is_disabled()
    _quiet(own)


def test_controls_tell_the_settings_exactly(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.evaluate(
        "attnmargin.set({settings: {...attnmargin.state().settings,"
        " method: 'mirror', p: 1.33, lr: 0.0004}})"
    )
    told = own.page.locator(".settings fieldset output").all_text_contents()
    assert told[:2] == ["1.33", "0.0004"]
    own.page.get_by_role("button", name="one step on").click()
    slider = own.page.locator(".player input").first
    assert slider.get_attribute("aria-valuetext") == "1"


def test_methods_that_would_take_minutes_are_not_offered(path: Path, visit: Visiting) -> None:
    own = visit(path)
    assert own.page.locator("option:disabled").count() == 0
    own.page.evaluate(
        """() => {
             const ones = new Array(12).fill(1), X = [[ones, ones.map((_, k) => k)]];
             const settings = {...attnmargin.state().settings, method: "steepest", norm: "max"};
             attnmargin.set({data: {X, z: [ones], y: [1], v: ones}, settings, focus: 0});
           }"""
    )
    assert _state(own)["settings"]["method"] == "gd"
    options = own.page.locator(".settings fieldset").first.locator("option:disabled")
    assert [text.split()[0] for text in options.all_text_contents()] == ["sign", "spectral"]
    _quiet(own)


def test_a_mixture_neither_settles_nor_chooses(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator(".tour .chip").nth(4).click()
    headline = own.page.locator(".verdict strong").text_content() or ""
    assert headline.startswith("Gradient descent with plain steps mixes tokens")
    assert own.page.locator(".curve line.mark").count() == 0
    assert own.page.locator(".choices p").inner_text().startswith("For the other losses: ")


def test_all_tokens_are_alike_at_zero(path: Path, visit: Visiting) -> None:
    """The first token is named first where all have the same attention: nothing has settled."""
    own = visit(path)
    own.page.locator(".tour .chip").first.click()
    assert own.page.evaluate("attnmargin.look().endings[0].settled") == 0
    assert own.page.locator(".curve line.settled").count() == 0
    assert own.page.locator(".curve line.since").count() == 2
    own.page.evaluate("attnmargin.set({start: [1, 0, 0, 1]})")
    assert own.page.evaluate("attnmargin.look().endings[0].settled") == 0
    assert own.page.locator(".curve line.settled").count() == 2


def test_a_sentence_can_be_added(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.get_by_role("tab", name="Sentences").click()
    own.page.get_by_text("add a sentence").click()
    own.page.locator(".sentences input").fill("an odd <b>gloomy</b> film")
    own.page.keyboard.press("Enter")
    assert _state(own)["words"][6] == ["an", "odd", "<b>gloomy</b>", "film"]
    assert own.page.locator(".sentences b").count() == 0
    _quiet(own)


def test_the_plane_is_as_it_was_after_other_scenes(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.locator("[data-handle=token-0-0]").focus()
    own.page.keyboard.press("ArrowRight")
    before = _state(own)
    for name in ("Sentences", "Next tokens", "Sentences", "Plane"):
        own.page.get_by_role("tab", name=name).click()
    assert _state(own)["data"] == before["data"]
    assert _state(own)["words"] is None
    own.page.get_by_role("button", name="one step on").click()
    own.page.get_by_role("tab", name="Next tokens").click()
    own.page.get_by_role("tab", name="Plane").click()
    assert _step(own) == 1
    own.page.get_by_role("tab", name="Sentences").click()
    own.page.locator(".tour .chip").nth(1).click()
    shown = _state(own)["data"]
    own.page.get_by_role("tab", name="Sentences").click()
    own.page.get_by_role("tab", name="Plane").click()
    assert _state(own)["data"] == shown
    _quiet(own)


def test_what_does_not_change_is_said_once(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.evaluate(
        """() => {
             window.said = 0;
             const seen = new MutationObserver((all) => { window.said += all.length; });
             seen.observe(document.querySelector(".says"), {childList: true, subtree: true});
           }"""
    )
    own.page.get_by_role("button", name="▶ play").click()
    own.page.wait_for_function("parseInt(document.querySelector('.player output').textContent) > 5")
    assert own.page.evaluate("said") == 0
    own.page.locator("[data-flip]").first.click()
    own.page.wait_for_function("said > 0")


def test_only_the_first_button_drags(path: Path, visit: Visiting) -> None:
    own = visit(path)
    before = _state(own)["data"]
    box = own.page.locator("[data-handle=token-0-3] path.token").bounding_box()
    assert box is not None
    mouse = own.page.mouse
    mouse.move(box["x"] + 5, box["y"] + 5)
    mouse.down(button="right")
    mouse.move(box["x"] + 60, box["y"] + 60)
    mouse.up(button="right")
    assert _state(own)["data"] == before
    mouse.move(box["x"] + 5, box["y"] + 5)
    mouse.down()
    own.page.keyboard.press("Delete")
    mouse.move(box["x"] + 60, box["y"] + 60)
    mouse.up()
    assert len(_state(own)["data"]["X"][0]) == 3
    _quiet(own)


def test_the_page_is_printed(path: Path, visit: Visiting) -> None:
    own = visit(path)
    own.page.emulate_media(media="print")
    assert own.page.locator("svg.plane").is_visible()
    assert own.page.locator(".verdict").is_visible()
    assert not own.page.locator(".tour").is_visible()


def test_names_are_never_markup(visit: Visiting, tmp_path: Path) -> None:
    image, script = (
        "<img src=x onerror=window.struck=1>",
        "</script><script>window.struck=1</script>",
    )
    data = am.random_data(2, 2, 2, name="names")
    own = visit(write_explorer(tmp_path / "names.html", data, [[image, script], ["<!--", "]]>"]]))
    own.page.evaluate(
        "(text) => attnmargin.set({scene: 'graph', graph: `${text} b -> b`})", "<b>x</b>" + image
    )
    own.page.get_by_role("tab", name="Plane").click()
    own.page.get_by_role("button", name="one step on").click()
    assert own.page.evaluate("window.struck") is None
    assert own.page.locator(f"text={image}").count() >= 1
    assert own.page.locator(".explorer img, .explorer script").count() == 0
    _quiet(own)


@pytest.mark.parametrize(
    "settings",
    [
        ["mirror", "W", "fro", 1.0000001, 0.1, 1, "logistic"],
        ["mirror", "KQ", "fro", 2, 0.1, 1, "logistic"],
        ["steepest", "W", "fro", 2, 0.1, 1, "logistic"],
    ],
)
def test_links_to_what_the_page_cannot_run(
    path: Path, visit: Visiting, settings: list[Any]
) -> None:
    packed = base64.urlsafe_b64encode(json.dumps({"s": "graph", "o": settings}).encode()).decode()
    own = visit(path)
    own.page.goto(f"{path.as_uri()}#1.{packed.rstrip('=')}")
    own.page.reload()
    assert _state(own)["scene"] == "plane"
    _quiet(own)


def test_a_run_that_the_page_does_not_know_has_no_explorer() -> None:
    data = am.random_data(2, 3, 2, name="steepest")
    words = name_tokens(data)
    assert "explorer-state" in prediction_explorer(am.predict(data), words)
    assert "explorer-state" in prediction_explorer(
        am.predict(data, method="steepest", norm="max"), words
    )
    assert prediction_explorer(am.predict(data, method="steepest", norm="sum"), words) == ""


def test_every_step_of_the_tour_works(path: Path, visit: Visiting) -> None:
    own = visit(path)
    for number, step in enumerate(tour_steps()):
        own.page.locator(".tour .chip").nth(number).click()
        assert step["task"] in (own.page.locator(".tour-text").text_content() or "")
        state = _state(own)
        for name, value in step["state"].items():
            assert state[name] == value
        _quiet(own)


def test_a_link_brings_the_state_back(path: Path, visit: Visiting, tmp_path: Path) -> None:
    own = visit(path)
    own.page.locator(".tour .chip").nth(3).click()
    own.page.get_by_text("copy link").click()
    link = own.page.evaluate("location.href")
    other = visit(path)
    other.page.goto(link)
    other.page.reload()
    assert _state(other) == _state(own)
    _quiet(other)
    other.page.goto(f"{path.as_uri()}#garbage")
    other.page.reload()
    assert _state(other)["scene"] == "plane"
    _quiet(other)


def test_files_in_and_out(path: Path, visit: Visiting, tmp_path: Path) -> None:
    data = am.random_data(2, 3, 4, name="file in")
    own = visit(path, accept_downloads=True)
    own.page.set_input_files(".files input", data.save(tmp_path / "own.npz"))
    own.page.get_by_text("own.npz is open").wait_for()
    with own.page.expect_download() as download:
        own.page.get_by_text("save .npz").click()
    back = am.AttentionData.load(download.value.path().rename(tmp_path / "back.npz"))
    for name in ("X", "z", "y", "v"):
        assert torch.equal(getattr(back, name), getattr(data, name)), name
    own.page.set_input_files(".files input", path)
    assert ".npz" in (own.page.locator(".files .note").text_content() or "")
    _quiet(own)


def test_a_dropped_file_opens(path: Path, visit: Visiting, tmp_path: Path) -> None:
    file = am.random_data(2, 3, 2, name="dropped").save(tmp_path / "dropped.npz")
    own = visit(path)
    own.page.evaluate(
        """(bytes) => {
             const transfer = new DataTransfer();
             transfer.items.add(new File([new Uint8Array(bytes)], "dropped.npz"));
             const event = new DragEvent("drop", {dataTransfer: transfer, bubbles: true});
             document.querySelector(".explorer").dispatchEvent(event);
           }""",
        list(file.read_bytes()),
    )
    own.page.get_by_text("dropped.npz is open").wait_for()
    assert len(_state(own)["data"]["X"][0]) == 3
    _quiet(own)


def test_pictures_are_saved(path: Path, visit: Visiting, tmp_path: Path) -> None:
    own = visit(path, accept_downloads=True)
    with own.page.expect_download() as download:
        own.page.get_by_text("save SVG").click()
    root = ElementTree.parse(download.value.path()).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//*[@data-handle]")) == 12
    with own.page.expect_download() as download:
        own.page.get_by_text("save PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    _quiet(own)


def test_without_scripts_the_tour_is_told_in_pictures(path: Path, visit: Visiting) -> None:
    own = visit(path, java_script_enabled=False)
    assert own.page.locator("figure svg").count() == 6
    text = own.page.inner_text("body")
    for step in tour_steps():
        assert step["title"] in text


def test_wide_data_are_shown_in_their_plane(visit: Visiting, tmp_path: Path) -> None:
    data = am.random_data(3, 5, 7, name="wide")
    words = [[f"w{i}{t}" for t in range(5)] for i in range(3)]
    own = visit(write_explorer(tmp_path / "wide.html", data, words))
    assert own.page.locator("[data-handle^=token]").count() == 5
    drawn = own.page.evaluate("[...attnmargin.look().solution.W]")
    prediction = am.predict(data)
    expected = prediction.solution.W.flatten().tolist()
    assert drawn == pytest.approx(expected, abs=1e-9 * float(prediction.solution.value))
    assert own.page.get_by_text("w00", exact=True).count() >= 1
    _quiet(own)


def test_a_widget_and_its_notebook_follow_each_other(visit: Visiting, tmp_path: Path) -> None:
    """A model with the methods that anywidget's has, in place of a notebook."""
    blank = tmp_path / "blank.html"
    blank.write_text("<title>x</title><body></body>")
    own = visit(blank)
    state = explorer_state(am.random_data(2, 3, 2, name="widget"))
    own.page.evaluate("(state) => { window.given = state; }", json.loads(json.dumps(state)))
    own.page.add_script_tag(
        content=bundled("widget") + "window.renderWidget = $widget.renderWidget;", type="module"
    )
    own.page.wait_for_function("window.renderWidget !== undefined")
    own.page.evaluate(
        """() => {
             const seen = {};
             window.model = {
               state: given, saved: 0, get: () => model.state,
               set: (_, value) => { model.state = value; },
               save_changes: () => { model.saved += 1; },
               on: (name, act) => { seen[name] = act; }, off: (name) => { delete seen[name]; },
               tell: () => seen["change:state"](),
             };
             window.remove = renderWidget({model, el: document.body});
           }"""
    )
    own.page.locator("[data-handle=token-0-0]").focus()
    own.page.keyboard.press("ArrowUp")
    saved = own.page.evaluate("[model.saved, model.state.data.X[0][0][1]]")
    assert saved[0] >= 1
    assert saved[1] > state["data"]["X"][0][0][1]
    own.page.evaluate(
        "() => { model.state = {...model.state, data: {...model.state.data, v: [9, 9]}};"
        " model.tell(); }"
    )
    assert own.page.locator("[data-handle=head-0-0]").count() == 1
    assert own.page.evaluate("model.state.data.v") == [9, 9]
    _quiet(own)


def test_states_and_data() -> None:
    data = am.AttentionData(
        [np.eye(2), [[0.5, 0.25]]], [[1.0, 2.0], [3.0, 4.0]], [1, -1], [1.0, 0.0]
    )
    back = state_data(json.loads(json.dumps(explorer_state(data))))
    assert back.mask is not None
    assert back.mask.tolist() == [[True, True], [True, False]]
    assert torch.equal(back.X, data.X)
    assert torch.equal(back.z, data.z)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (am.random_data(2, 3, 2, trials=4, name="x"), "data: got a batch of shape (4,)"),
        (am.random_data(30, 20, 2, name="x"), "data: got 600 tokens of width 2"),
        (am.random_data(3, 7, 100, name="x"), "21 tokens of width 100; needs at most 20 tokens"),
        (am.random_data(1, 2, 129, name="x"), "width 129; needs tokens of width at most 128"),
        (
            am.AttentionData(torch.ones(1, 2, 2), torch.ones(1, 2, 2)),
            "data: got several queries per sequence",
        ),
    ],
)
def test_data_that_a_page_cannot_show(data: am.AttentionData, message: str) -> None:
    with pytest.raises(am.InputError) as error:
        explorer_state(data)
    assert message in str(error.value)
