"""``am.plot``: figures of results; they show the numbers of the result, and nothing is shown."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.plot.drawing import draw_panel, draw_picture
from attnmargin.plot.svg import element, embedded
from tests.instances import contradiction

FUNCTIONS = [name for name in am.plot.__all__ if name.islower()]


@pytest.fixture(scope="module")
def prediction() -> am.Prediction:
    return am.predict(am.random_data(3, 4, 6, name="figures"))


@pytest.fixture(scope="module")
def confirmation(prediction: am.Prediction) -> am.Confirmation:
    return am.confirm(prediction, steps=300)


@pytest.fixture(scope="module")
def batch() -> am.Confirmation:
    return am.confirm(am.predict(am.random_data(3, 4, 6, trials=4, name="figures")), steps=60)


@pytest.fixture(scope="module")
def importance() -> am.text.TokenImportance:
    texts = ["superb film", "superb plot", "dull film", "dull plot"] * 4
    corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0] * 4), ("neg", "pos"))
    return am.text.token_importance(corpus, am.text.Cleaning(least=1, stem=False))


def axes_of(figure: Any) -> list[Any]:
    """The axes of a figure, whose lines mypy takes for anything that can be an array."""
    return list(figure.axes)


def words(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def marked(axes: Any, marker: str) -> np.ndarray:
    """Places that have a mark, ``(N, 2)``."""
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return np.concatenate([line.get_xydata() for line in lines])


def test_the_room_is_in_order() -> None:
    assert am.plot.__all__ == sorted(am.plot.__all__)
    functions = [getattr(am.plot, name) for name in FUNCTIONS]
    assert all(callable(f) and ">>>" in (f.__doc__ or "") for f in functions)


def test_importing_does_not_import_matplotlib() -> None:
    code = "import sys, attnmargin.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_matplotlib_is_one_sentence(
    prediction: am.Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(am.MissingPackageError, match=r'pip install "attnmargin\[plot\]"'):
        am.plot.margins(prediction.solution)


def test_figures_are_not_registered_with_pyplot(prediction: am.Prediction) -> None:
    before = "matplotlib.pyplot" in sys.modules
    am.plot.margins(prediction.solution)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_tokens_show_selection_support_and_names(
    prediction: am.Prediction, confirmation: am.Confirmation
) -> None:
    names = [[f"w{i}{t}" for t in range(4)] for i in range(3)]
    axes = axes_of(am.plot.tokens(prediction, 2, names, confirmation))[0]
    assert axes.get_title() == "sequence 2"
    assert words(axes) == names[2]
    star = int(prediction.selection[2])
    way = prediction.direction @ prediction.data.z[2]
    place = float(prediction.data.X[2, star] @ way / way.norm())
    np.testing.assert_allclose(marked(axes, "*"), [[place, marked(axes, "*")[0, 1]]], atol=1e-9)
    rings = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert len(rings[0].get_xdata()) == int(prediction.support[2].sum())


def test_wide_characters_get_more_room() -> None:
    from attnmargin.plot.labels import place_names

    points = np.array([[90.0, 50.0]])
    plain, wide = (place_names(points, [name], (130.0, 100.0))[0, 0] for name in ("aaa", "字字字"))
    assert plain > 0 > wide  # to the left, where there is room


def test_alignment_and_attention_draw_the_numbers(confirmation: am.Confirmation) -> None:
    curve = axes_of(am.plot.alignment(confirmation))[0].lines[0]
    off = 1.0 - confirmation.correlation.numpy()[1:]
    np.testing.assert_allclose(curve.get_ydata(), off, atol=1e-12)
    mean, worst = axes_of(am.plot.attention(confirmation))[0].lines
    data, run = confirmation.prediction.data, confirmation.run
    share = am.measures.token_probability(data, run.W[-1], confirmation.prediction.selection)
    np.testing.assert_allclose(np.asarray(mean.get_ydata())[-1], float(share))
    assert (np.asarray(worst.get_ydata()) <= np.asarray(mean.get_ydata()) + 1e-12).all()


def test_a_batch_is_its_mean_with_a_band(batch: am.Confirmation) -> None:
    for figure in (am.plot.alignment(batch), am.plot.attention(batch)):
        assert len(axes_of(figure)[0].collections) == len(axes_of(figure)[0].lines)
        assert "middle 80 %" in str(figure._supxlabel.get_text())  # type: ignore[attr-defined]
    axes = axes_of(am.plot.trajectory(batch.run, batch.prediction.solution))
    assert len(axes) == 4
    assert all(len(own.collections) == 1 for own in axes)
    mean = batch.run.loss.mean(-1).numpy()
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), mean)
    low, high = (np.quantile(batch.run.loss[-1].numpy(), q) for q in (0.1, 0.9))
    ends = axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(ends, low).any()
    assert np.isclose(ends, high).any()


def test_trajectories_of_one_run() -> None:
    data = am.random_data(3, 4, 6, name="figures")
    run = am.train(data, steps=30)
    axes = axes_of(am.plot.trajectory(run))
    assert len(axes) == 3
    lengths = torch.linalg.matrix_norm(run.W).numpy()
    np.testing.assert_allclose(axes[2].lines[0].get_ydata(), lengths)
    assert axes[0].get_xlabel() == "training step"
    flow = axes_of(am.plot.trajectory(am.gradient_flow(data, 2.0, record=4)))
    assert "path length" in flow[0].get_xlabel()


def test_margins_are_bars_of_which_the_support_touches_the_line(prediction: am.Prediction) -> None:
    solution = prediction.solution
    axes = axes_of(am.plot.margins(solution))[0]
    heights = {round(bar.get_x() + 0.4): bar.get_height() for bar in axes.patches}
    values = (solution.problem.apply(solution.W) / solution.value).tolist()
    np.testing.assert_allclose([heights[k] for k in range(len(values))], values)
    tight = [k for k, height in heights.items() if np.isclose(height, float(solution.margin))]
    assert sorted(tight) == solution.support.nonzero().flatten().tolist()
    assert len(axes.get_xticklabels()) == 9


def test_many_rows_have_a_bar_per_sequence() -> None:
    data = am.random_data(50, 4, 60, name="figures")
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    solution = am.solve(problem)
    axes = axes_of(am.plot.margins(solution))[0]
    assert len(axes.patches) == 50
    value = solution.problem.apply(solution.W).reshape(50, 3).amin(-1) / solution.value
    found = sorted(bar.get_height() for bar in axes.patches)
    np.testing.assert_allclose(found, sorted(value.tolist()))


def test_margins_of_vectors_graphs_and_sets() -> None:
    data = am.random_data(3, 4, 6, name="figures")
    labels = am.label_problem(data.X, data.y, am.optimal_tokens(data))
    assert len(axes_of(am.plot.margins(am.solve(labels)))[0].patches) == 3
    graphs = am.token_graphs([[0, 1, 2], [1, 0, 2]], [0, 1], 3)
    rows = am.graph_problem(torch.eye(3, dtype=torch.float64), graphs)
    assert axes_of(am.plot.margins(am.solve(rows)))[0].patches


def test_scatters_with_and_without_a_model(importance: am.text.TokenImportance) -> None:
    axes = axes_of(am.plot.scatter(importance))
    assert len(axes) == 1
    assert {"superb", "dull"} <= set(words(axes[0]))
    assert sorted(marked(axes[0], ".")[:, 1]) == [8, 8, 8, 8]
    run = am.text.train_tokens(importance.pieces, am.text.TokenRecipe(d=4, epochs=2))
    trained = axes_of(am.plot.scatter(replace(importance, run=run)))
    for own, product in zip(trained, run.products, strict=True):
        np.testing.assert_allclose(sorted(marked(own, ".")[:, 1]), sorted(product))


def test_one_wrong_thing_each(
    prediction: am.Prediction, confirmation: am.Confirmation, batch: am.Confirmation
) -> None:
    data = prediction.data
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, [[True] * 4, [False] * 4, [True] * 4])
    impossible = am.predict(contradiction())
    lean = am.train(data, steps=3, keep_weights=False)
    other = am.predict(am.random_data(2, 3, 5, name="figures")).solution
    plot: Any = am.plot
    wrong = [
        (lambda: plot.tokens(batch.prediction), r"prediction: got a batch of shape \(4,\); needs"),
        (lambda: plot.tokens(3), "prediction: got a int; needs an instance of am.Prediction"),
        (lambda: plot.tokens(prediction, 3), "sequence: got 3; needs a sequence from 0 to 2"),
        (lambda: plot.tokens(am.predict(hidden), 1), "sequence: got 1, which the mask hides"),
        (lambda: plot.tokens(prediction, 0, [["a"]]), "words: got 1 row of"),
        (lambda: plot.tokens(impossible), "prediction: got a selection that no W can make"),
        (lambda: plot.tokens(prediction, confirmation=1), "confirmation: got a int"),
        (lambda: plot.alignment(prediction), "confirmation: got a Prediction"),
        (lambda: plot.alignment(am.confirm(impossible, steps=2)), "confirmation: got a selection"),
        (lambda: plot.attention(None), "confirmation: got a NoneType"),
        (lambda: plot.trajectory(lean), "run: got one with keep_weights=False; needs a run that"),
        (lambda: plot.trajectory(confirmation.run, other), r"solution: got W of shape \(5, 5\)"),
        (lambda: plot.trajectory(confirmation), "run: got a Confirmation"),
        (lambda: plot.margins(batch.prediction.solution), r"solution: got a batch of shape \(4,\)"),
        (lambda: plot.margins(impossible.solution), "solution: got an infeasible problem"),
        (lambda: plot.scatter(prediction), "importance: got a Prediction; needs what am.text"),
        (lambda: plot.picture({"panels": []}), "picture: got no panels"),
        (lambda: plot.picture(3), "picture: got a int; needs an am.plot.Picture"),
    ]
    for call, message in wrong:
        with pytest.raises(am.InputError, match=message):
            call()


def panel_of(kind: str, **more: Any) -> am.plot.Panel:
    series: Any = {"kind": kind, "name": "n", "x": np.arange(3), "y": np.arange(1.0, 4.0), **more}
    return am.plot.Panel(title="$5", axes=("x", "y"), series=[series])


@pytest.mark.parametrize("kind", ["line", "bar", "points", "level", "endless", "arrow", "text",
                                  "box", "names"])  # fmt: skip
def test_every_kind_of_series_becomes_svg(kind: str) -> None:
    text = embedded(draw_panel(panel_of(kind, labels=["$a", "b", "c"])), "words")
    assert text.startswith('<svg role="img" aria-label="words"')
    assert "currentColor" in text
    assert "#010203" not in text
    assert "#ffffff" not in text or kind == "box"  # the page shows through


def test_steps_from_zero_have_a_place_on_a_logarithmic_axis() -> None:
    panel = panel_of("line")
    panel["logarithmic"] = (True, True)
    assert draw_panel(panel).axes[0].get_xscale() == "symlog"
    panel["series"][0]["x"] = np.arange(1, 4)
    assert draw_panel(panel).axes[0].get_xscale() == "log"


def test_captions_stand_below() -> None:
    picture = am.plot.Picture(name="p", caption="long " * 40, panels=[panel_of("line")] * 2)
    figure = draw_picture(picture)
    assert len(figure.axes) == 2
    assert str(figure._supxlabel.get_text()).count("\n") >= 1  # type: ignore[attr-defined]


def test_elements_escape_and_round() -> None:
    inner = element("title", None, "a & <b>")
    assert inner == "<title>a &amp; &lt;b&gt;</title>"
    text = element("rect", {"x": 1 / 3, "y": -0.01, "class": 'a"b', "rx": None, "z": 2}, inner)
    assert text == (
        '<rect x="0.3" y="0" class="a&quot;b" z="2"><title>a &amp; &lt;b&gt;</title></rect>'
    )
    assert element("g") == "<g/>"


@pytest.mark.parametrize("kind", ["line", "points", "bar"])
def test_logarithmic_axes_take_every_kind(kind: str) -> None:
    panel = panel_of(kind)
    panel["logarithmic"] = (True, True)
    panel["series"][0]["x"] = np.arange(1, 4)
    assert draw_panel(panel).axes[0].get_xscale() == "log"


def test_names_stay_inside_of_axes_that_fit_their_data() -> None:
    panel = panel_of("points", x=np.array([100.0, 150.0, 200.0]))
    names: Any = {**panel["series"][0], "kind": "names", "labels": ["", "", "a long name"]}
    panel["series"].append(names)
    last: Any = draw_panel(panel).axes[0].texts[-1]
    assert last.get_text() == "a long name"
    assert last.xyann[0] < -50.0  # to the left of a point at the right edge
