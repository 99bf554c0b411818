"""Figures at small counts: what they claim, and what they draw."""

from pathlib import Path

import pytest

from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import experiments, find

SMALL = {"A:fig4": 3, "A:fig5": 3, "A:fig6": 2, "A:fig8": 6, "A:fig10": 2, "A:conjecture": 1}


QUICK = ("A:fig1", "A:fig3", "A:fig7", "A:fig7-penalty", "A:fig9", "A:fig12")


PAPER_B = ("B:example1", "B:fig2", "B:fig3")


PAPER_C = ("C:fig2", "C:fig3", "C:fig4", "C:fig5", "C:fig6", "C:automaton", "C:convexity",
           "C:orthogonal", "C:path")  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *PAPER_B, *PAPER_C, "D:lemma2", "D:theorem5"])
def test_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    record = reproduce(find(name), trials=min(experiments()[name].trials, 5), out=tmp_path)
    assert record["claims"]
    pictures = [file for file in record["files"] if file.endswith(".png")]
    assert pictures
    assert all(Path(file).stat().st_size > 5000 for file in pictures)


def test_claims_of_paper_c_hold_at_small_counts(tmp_path: Path) -> None:
    for name in ("C:fig2", "C:fig3", "C:fig4", "C:automaton", "C:orthogonal"):
        record = reproduce(find(name), trials=min(experiments()[name].trials, 10), out=tmp_path)
        assert all(claim["holds"] for claim in record["claims"]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A:fig5", "A:fig10", "A:conjecture", "B:fig4", "B:fig6"])
def test_long_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    record = reproduce(find(name), trials=SMALL.get(name, 3), out=tmp_path)
    assert record["claims"]
    if name == "A:fig5":
        shared = reproduce(find("A:fig2"), trials=SMALL[name], out=tmp_path)
        assert shared["seconds"] == 0.0  # the points are those of figure 5
