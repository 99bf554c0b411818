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
    last = am.theory.check_embeddings(model, lr=1.0)[-1]
    assert (last.name, str(last.outcome) != "not decidable here") == ("Lemma 19", True)
    monkeypatch.setattr(paper_d, "other_selections", lambda *_: math.nan)
    assert str(am.theory.check_embeddings(model, lr=1.0)[-1].outcome) == "not decidable here"
