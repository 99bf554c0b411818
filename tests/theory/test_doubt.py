"""What rounding could have decided is not decided."""

import math

import pytest
import torch

import attnmargin as am
from attnmargin.theory import paper_d
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import assumption_c, theorem_6


def outcome(data: am.AttentionData, label: str) -> str:
    found = {check.label: str(check.outcome) for check in am.theory.check_theory(data)}
    return found[label]


def test_scores_that_differ_are_not_equal() -> None:
    """Scores 1, 1e-10 and 0: another start ends elsewhere, so nothing is guaranteed."""
    X = [[[-2.0, 1.0], [1.0, 1e-10], [0.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [1], [0.0, 1.0])
    assert outcome(data, "A: Assumption B.2") == outcome(data, "A: Theorem 4") == "fails"
    assert am.predict(data).verdict != am.Verdict.GUARANTEED
    start = torch.tensor([[40.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    assert am.train(data, init=start, record=2000).selection[-1].tolist() == [1]


def test_scores_within_rounding_are_in_doubt() -> None:
    X = [[[1.0, 1.0], [0.3, 1e-17], [0.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [1], [0.0, 1.0])
    assert outcome(data, "A: Assumption B.2") == outcome(data, "A: Theorem 4")
    assert outcome(data, "A: Assumption B.2") == "not decidable here"
    equal = am.AttentionData([[[1.0, 1.0], [0.3, 0.0], [0.0, 0.0]]], [[1.0, 0.0]], [1], [0.0, 1.0])
    assert outcome(equal, "A: Assumption B.2") == outcome(equal, "A: Theorem 4") == "holds"


@pytest.mark.parametrize(
    ("least", "word"), [(1.2e-16, "not decidable here"), (1e-3, "holds"), (-1e-3, "fails")]
)
def test_a_first_step_whose_margin_is_rounding_is_in_doubt(least: float, word: str) -> None:
    """Rows of the first direction are 1 and ``least``: what rounding can make of 0 is no proof."""
    X = [[[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [1], [1.0, 1.0])
    facts = Facts(data)
    facts.first_direction = torch.tensor([[1.0, 0.0], [least, 0.0]], dtype=torch.float64)
    assert str(assumption_c(facts).outcome) == str(theorem_6(facts).outcome) == word


def test_the_rate_of_lemma_4_is_refused_for_another_head() -> None:
    data = am.random_data(2, 3, 4, name="doubt")
    head = am.heads.ScoreHead(torch.rand(2, 3, dtype=torch.float64))
    with pytest.raises(am.InputError, match="lr: got 'auto' with a ScoreHead; needs the linear"):
        am.train(data, head=head, lr="auto", normalize=False)


def test_lemma_19_is_in_doubt_where_a_margin_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = am.embeddings.important_tokens(4, 3, seed=0)
    model = am.embeddings.random_embeddings(tokens, d=64)

    def outcome() -> str:
        checks = am.theory.check_embeddings(model, lr=1.0)
        return next(str(check.outcome) for check in checks if check.name == "Lemma 19")

    assert outcome() != "not decidable here"
    monkeypatch.setattr(paper_d, "other_selections", lambda *_: math.nan)
    assert outcome() == "not decidable here"


@pytest.mark.parametrize(
    ("best", "word"),
    [
        (1.0, "fails"),
        (1.0 - 2.0**-53, "not decidable here"),
        (1.0 + 2.0**-52, "not decidable here"),
        (1.001, "fails"),
        (0.999, "holds"),
    ],
)
def test_a_slope_that_vanishes_at_the_best_score(best: float, word: str) -> None:
    """(1 − u)² has no slope at 1: that sequence pulls like e^(−2 margin), and not to W_mm."""
    X = [[[best, 0.0], [0.25, 0.5]], [[0.5, 1.0], [0.125, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0], [0.25, 1.0]], [1, 1], [1.0, 0.0])
    checks = {check.label: str(check.outcome) for check in am.theory.check_theory(data)}
    squared = {c.label: str(c.outcome) for c in am.theory.check_theory(data, loss="squared")}
    assert squared["A: Assumption A"] == word
    needs_a = ["Lemma 2", "Theorem 2", "Lemma 4", "Theorem 3, by the queries", "Theorem 6"]
    for name in (*needs_a, "Theorem 7", "Theorem 9"):
        assert checks[f"A: {name}"] == "holds", name
        assert squared[f"A: {name}"] == word, name
    assert squared["B: Theorem 1"] == word
    verdict = am.predict(data, loss="squared").verdict
    assert (verdict == am.Verdict.GUARANTEED) == (word == "holds")
    assert verdict != am.Verdict.CONJECTURED


def test_a_batch_in_doubt_is_its_loop() -> None:
    X = torch.tensor([[[[b, 0.0], [0.25, 0.5]]] for b in (1.0, 1.0 - 2.0**-53, 0.9)]).double()
    X[1, 0, 0, 0] = 1.0 - 2.0**-53
    data = am.AttentionData(X, [[[1.0, 0.0]]], [[1]], [1.0, 0.0])
    whole = am.theory.check_theory(data, loss="squared")
    for k in range(3):
        own = am.theory.check_theory(data[k], loss="squared")
        assert [str(c[k].outcome) for c in whole] == [str(c.outcome) for c in own]


@pytest.mark.parametrize(("least", "word"), [(0.0, "fails"), (1e-17, "not decidable here"),
                                             (0.1, "holds")])  # fmt: skip
def test_the_log_loss_near_zero(least: float, word: str) -> None:
    data = am.AttentionData([[[1.0, 0.0], [least, 1.0]]], [[1.0, 0.0]], [1], [1.0, 0.0])
    found = {c.label: str(c.outcome) for c in am.theory.check_theory(data, loss="log")}
    assert found["A: Assumption A"] == found["A: Theorem 2"] == word


def test_an_exponential_loss_that_overflows_falls_all_the_same() -> None:
    data = am.AttentionData([[[1.0, 0.0], [-1.0, 1.0]]], [[1.0, 0.0]], [1], [1000.0, 0.0])
    found = {c.label: str(c.outcome) for c in am.theory.check_theory(data, loss="exponential")}
    assert found["A: Assumption A"] == "holds"


@pytest.mark.parametrize(
    ("scale", "word"),
    [(1.0, "fails"), (1.0 - 2.0**-53, "not decidable here"), (0.9, "holds"), (1.1, "fails")],
)
def test_assumption_1_of_paper_c_with_the_squared_loss(scale: float, word: str) -> None:
    E = torch.eye(3, dtype=torch.float64)
    checks = am.theory.check_next_token(E, [[0, 1, 2], [1, 2]], [0, 1], C=scale * E, loss="squared")
    found = {check.name: str(check.outcome) for check in checks}
    assert found["Assumption 1"] == found["Theorem 1"] == word
