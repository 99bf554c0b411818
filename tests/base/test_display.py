"""Objects that can be looked at: a few lines each, the same in notebooks."""

import pytest

import attnmargin as am
from attnmargin.base.display import Summarised


def results() -> list[Summarised]:
    data = am.random_data(3, 3, 4, trials=40, name="display")
    prediction = am.predict(data[0])
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    solution = am.solve(problem)
    found = am.selections.locality(data, am.optimal_tokens(data))
    assert prediction.search is not None
    return [
        prediction, am.confirm(prediction, steps=20), solution, solution.certificate, problem,
        am.train(data, steps=2), found, prediction.search,
        am.embeddings.token_statistics([[0, 1], [1]], [1, -1], 2),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> list[Summarised]:
    return results()


def test_every_result_prints_a_few_lines(shown: list[Summarised]) -> None:
    for result in shown:
        text = repr(result)
        assert text.startswith(type(result).__name__)
        assert 2 <= len(text.splitlines()) <= 8
        assert len(text) < 600


def test_notebooks_show_the_same_lines_as_a_table(shown: list[Summarised]) -> None:
    for result in shown:
        html = result._repr_html_()
        assert html.count("<tr>") == len(result.summary())
        assert html.startswith(f"<table><caption>{type(result).__name__}</caption>")


def test_a_batch_counts_its_members() -> None:
    data = am.random_data(2, 2, 6, trials=5, name="display")
    summary = am.predict(data).summary()
    counts = [int(part.split()[0]) for part in summary["verdict"].split(", ")]
    assert sum(counts) == 5
    assert " to " in summary["margin"]
    assert am.predict(data[:0]).summary()["verdict"] == "none"


def test_checks_fit_on_a_line() -> None:
    check = am.theory.check_theory(am.random_data(2, 2, 4, name="theory"))[0]
    assert repr(check) == "<Check A: Theorem 1: holds>"
