"""T, of texts: what a corpus is compared with, and a small run."""

import numpy as np

import attnmargin as am
from attnmargin.papers.engine.experiment import Task
from attnmargin.papers.registry import find
from attnmargin.papers.t.evidence import measured


def test_what_is_found_is_compared_with_what_was_planted() -> None:
    strong = am.text.planted_corpus(3000, words=300, deciding=8, length=60, strengths=[1.2])
    own = measured(strong)
    assert own["found"] >= 8
    assert own["false"] == (own["found"] - 8) / own["found"]
    power = own["power"]
    assert isinstance(power, np.ndarray)
    assert np.isnan(power[:3]).all()
    assert power[3] == 1.0


def test_a_small_run() -> None:
    point = find("T:evidence").points[0]
    arrays = find("T:evidence").run(Task(point.settings, 2, 0, lambda done, total: None))
    assert arrays["power"].shape == (2, 4)
    assert arrays["difference"].min() > 0.94
    assert arrays["false"].max() <= 0.06
