"""Pictures of sweeps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.plot.drawing import draw_picture
from attnmargin.plot.sweeps import sweep_picture


def measured(x: int, kind: str, trial: int) -> dict[str, Any]:
    """Quantities of every kind."""
    return {"square": x * x + trial, "large": trial % 2 == 0, "still": 3.0,
            "status": "optimal" if x > 1 else "infeasible"}  # fmt: skip


def test_means_along_the_setting_that_varies_most(tmp_path: Path) -> None:
    grid = {"x": [1, 10, 100], "kind": ["a", "b"]}
    picture = sweep_picture(am.sweep(measured, grid, 4, out=tmp_path, jobs=1))
    panels = {panel["title"]: panel for panel in picture["panels"]}
    assert list(panels) == ["square", "large", "share of status optimal", "share of status infeasible"]  # fmt: skip  # noqa: E501
    square = panels["square"]
    assert (square["axes"], square["logarithmic"]) == (("x", ""), (True, True))
    assert [own["name"] for own in square["series"]] == ["kind a", "kind b"]
    curve = square["series"][0]
    assert curve["y"].tolist() == [2.5, 101.5, 10001.5]
    half = 1.96 * np.std(range(4), ddof=1) / 2
    np.testing.assert_allclose(curve["high"] - curve["y"], half)
    assert panels["share of status infeasible"]["series"][0]["y"].tolist() == [1.0, 0.0, 0.0]
    assert panels["large"]["series"][0]["y"].tolist() == [0.5] * 3
    assert "Means over 4 trials" in picture["caption"]
    assert len(draw_picture(picture).axes) == 4


def test_words_alone_are_bars_and_nothing_is_an_error(tmp_path: Path) -> None:
    found = am.sweep(lambda kind: len(kind), {"kind": ["a", "bb"]}, out=tmp_path / "a", jobs=1)
    panel = sweep_picture(found)["panels"][0]
    assert (panel["ticks"], panel["series"][0]["kind"]) == (["kind a", "kind bb"], "bar")
    half = am.sweep(lambda kind: 1, {"kind": ["a", "b"]}, out=tmp_path / "b", shard="1/2", jobs=1)
    assert sweep_picture(am.collect(*(f.path for f in half.folders)))["caption"].endswith(
        "1 of 2 points are missing."
    )
    none = am.sweep(lambda x: 1 / 0, {"x": 1}, out=tmp_path / "c", jobs=1)
    with pytest.raises(InputError, match="sweep: got no finished point; needs at least one"):
        sweep_picture(none)
