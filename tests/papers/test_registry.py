"""The names of the figures."""

from attnmargin.papers.registry import PAPERS, experiments, names_of


def test_names_of_a_paper() -> None:
    names = names_of(["A"])
    assert names[:4] == ["A:fig1", "A:fig2", "A:fig3", "A:fig4"]
    figures = {f"A:fig{k}" for k in range(1, 13)}
    more = {"A:fig7-penalty", "A:sec7", "A:sec9", "A:path", "A:conjecture"}
    assert set(names) == figures | more
    assert names_of(["A:fig7", "A:fig7"]) == ["A:fig7"]


def test_every_paper_has_a_title() -> None:
    assert {experiment.paper for experiment in experiments().values()} <= set(PAPERS)
