"""Figures at small counts: what they claim, and what they draw."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import experiments, find

QUICK = ("A:fig1", "A:fig3", "A:fig7", "A:fig7-penalty", "A:fig9", "A:fig12", "A:sec9")
PAPER_B = ("B:example1", "B:fig2", "B:fig3")
PAPER_C = ("C:fig2", "C:fig3", "C:fig4", "C:fig5", "C:fig6", "C:automaton", "C:convexity",
           "C:orthogonal", "C:path")  # fmt: skip
TRIALS = {
    "A:fig10": 2,
    "A:conjecture": 1,
    "A:sec7": 1,
    "B:fig6": 1,
    "P:mirror": 1,
    "P:starts": 2,
    "P:rate": 2,
} | dict.fromkeys(("C:fig3", "C:fig4", "C:automaton", "C:orthogonal"), 10)
# Which of its claims, counted from zero, a figure misses with so few trials.
MISSED = {
    "A:conjecture": [1],
    "A:sec9": [5],
    "C:fig5": [1, 3],
}


def small(name: str, out: Path) -> dict[str, Any]:
    count = min(experiments()[name].trials, TRIALS.get(name, 3))
    return reproduce(find(name), trials=count, out=out)


def judge(name: str, record: dict[str, Any]) -> None:
    """The claims hold, and the pictures can be opened and are not blank."""
    assert record["claims"]
    missed = [k for k, claim in enumerate(record["claims"]) if claim["verdict"] == "fails"]
    assert missed == MISSED.get(name, []), [record["claims"][k] for k in missed]
    pictures = [file for file in record["files"] if file.endswith(".png")]
    assert pictures
    assert all(imread(file)[..., :3].std() > 0.01 for file in pictures)


PREDICTIONS = ("P:certified", "P:mirror", "P:starts", "P:rate")


@pytest.mark.parametrize(
    "name", [*QUICK, *PAPER_B, *PAPER_C, "D:lemma2", "D:theorem5", *PREDICTIONS]
)
def test_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    judge(name, small(name, tmp_path))


@pytest.mark.parametrize(
    "name", ["A:fig5", "A:fig10", "A:sec7", "A:conjecture", "B:fig4", "B:fig6"]
)
def test_long_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    judge(name, small(name, tmp_path))
    if name == "A:fig5":
        shared = small("A:fig2", tmp_path)
        assert shared["seconds"] == 0.0  # the points are those of figure 5
        judge("A:fig2", shared)
