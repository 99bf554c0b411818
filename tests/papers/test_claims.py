"""Every claim can fail; what has no bound is a measurement, and counted apart."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import attnmargin as am
from attnmargin.papers.d import layers
from attnmargin.papers.engine.claims import stated
from attnmargin.papers.engine.experiment import Experiment, Measurement, Point
from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.engine.summary import write_summary
from attnmargin.plot.panels import Panel, Picture, Series

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def toy() -> Experiment:
    line = Series(kind="line", name="y", x=np.arange(3.0), y=np.arange(3.0))
    panel = Panel(title="t", axes=("x", "y"), series=[line])
    return Experiment(
        "A:fig1", "A toy", 1, (Point("a"),), lambda task: {"y": np.ones(1)},
        lambda results: [stated("one", 1.0, "≥ 2", False)],
        lambda results: [Picture(name="toy", caption="a toy", panels=[panel])],
        measurements=lambda results: [Measurement("a number", 3.0), Measurement("none", np.nan)],
    )  # fmt: skip


def test_measurements_are_no_claims(tmp_path: Path) -> None:
    record = reproduce(toy(), out=tmp_path)
    assert [claim["claim"] for claim in record["claims"]] == ["one"]
    assert record["measurements"] == [{"what": "a number", "measured": 3.0},
                                      {"what": "none", "measured": None}]  # fmt: skip
    text = write_summary(tmp_path, "A", ["A:fig1"]).read_text()
    assert "0 of 1 claims hold; 2 further numbers are measured" in text
    assert "- a number: 3" in text


def test_no_committed_claim_lacks_a_bound() -> None:
    files = sorted(RESULTS.glob("*/*/result.json"))
    assert len(files) > 40
    for file in files:
        record = json.loads(file.read_text(encoding="utf-8"))
        assert all(c["bound"] not in ("reported", "all", "") for c in record["claims"]), file


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_in_every_format_and_always_the_same(
    tmp_path: Path, kind: str, start: bytes
) -> None:
    paths = [Path(reproduce(toy(), out=tmp_path / k, kind=kind)["files"][0]) for k in "ab"]
    assert [path.name for path in paths] == [f"toy.{kind}"] * 2
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


def test_logistic_regression_listens_to_its_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, start, labels = np.array([0, 1]), np.arange(3), np.array([1, 0])
    pieces = am.text.Pieces(ids, start, labels, ["good", "bad"])
    whole = scipy.optimize.minimize

    def hasty(*args: object, options: dict[str, float], **kwargs: object) -> object:
        return whole(*args, options={**options, "maxiter": 1}, **kwargs)

    monkeypatch.setattr(layers, "minimize", hasty)
    with pytest.raises(am.InaccurateError, match="ridge 1e-06 has a gradient of"):
        layers.logistic_regression(pieces, 1e-6, np.zeros(2))
