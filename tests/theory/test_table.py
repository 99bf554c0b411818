"""The table of all statements."""

import pytest
import torch

import attnmargin as am
from tests.instances import identity_data


def test_every_statement_of_the_four_papers_has_a_row() -> None:
    labels = [check.label for check in am.theory.check_theory(identity_data())]
    expected = [f"A: Theorem {k}" for k in range(1, 11)] + [f"A: Lemma {k}" for k in range(1, 7)]
    expected += ["A: Lemma 2, the limit", "A: Lemma 15", "A: Corollary 1", "A: Corollary 2"]
    expected += ["A: Assumption B.1, by width", "B: Lemma 17", "B: Remark 1"]
    expected += [f"A: Assumption {k}" for k in ("A", "B.1", "B.2", "C", "D", "E")]
    expected += [f"B: Theorem {k}" for k in range(1, 6)] + ["B: Assumption B"]
    expected += [f"C: Assumption {k}" for k in range(1, 5)] + [f"C: Theorem {k}" for k in (1, 2, 3)]
    expected += [
        "C: Acyclicity",
        "C: (Graph-SVM) is feasible",
        "D: Definition 1",
        "D: Assumption 4",
    ]
    expected += ["D: Theorem 5", "D: Lemma 2", "D: Lemma 6", "D: Lemma 19"]
    assert set(expected) <= set(labels)
    assert len(labels) == len(set(labels))


def test_rows_of_papers_c_and_d_are_those_of_their_checks() -> None:
    labels = [check.label for check in am.theory.check_theory(identity_data())]
    tokens = am.embeddings.important_tokens(4, 3, seed=0)
    model = am.embeddings.random_embeddings(tokens, d=16)
    own = am.theory.check_next_token(torch.eye(2), [[0, 1]], [0])
    own += am.theory.check_embeddings(model, lr=1.0)
    assert [label for label in labels if label[0] in "CD"] == [check.label for check in own]


@pytest.mark.parametrize("how", [{}, {"parameter": "KQ"}, {"p": 1.75}])
def test_batch_equals_loop(how: dict[str, object]) -> None:
    data = am.random_data(3, 3, 4, trials=4, name="theory loop")
    together = am.theory.check_theory(data, **how)  # type: ignore[arg-type]
    for index in range(4):
        alone = am.theory.check_theory(data[index], **how)  # type: ignore[arg-type]
        for many, one in zip(together, alone, strict=True):
            assert many[index].outcome == one.outcome, one.label
            for name, number in one.numbers.items():
                torch.testing.assert_close(many[index].numbers[name], number, equal_nan=True)


def test_the_conjecture_is_about_w() -> None:
    """Section 5.2 speaks of W_mm and gradient descent on W: B.1 and D hold here."""
    data = identity_data()

    def outcome(**how: object) -> str:
        checks = am.theory.check_theory(data, **how)  # type: ignore[arg-type]
        return next(str(c.outcome) for c in checks if c.name == "Conjecture of Section 5.2")

    assert outcome() == "holds"
    assert outcome(parameter="KQ") == outcome(p=3.0) == "not decidable here"


def test_theorems_about_w_are_silent_about_factors_and_mirror_descent() -> None:
    for how in ({"parameter": "KQ"}, {"p": 3.0}):
        prediction = am.predict(identity_data(), **how)
        names = ("Theorem 3", "Theorem 4", "Theorem 6", "Theorem 7", "Conjecture of Section 5.2")
        for name in names:
            assert prediction.check(f"A: {name}").outcome == am.theory.Outcome.UNDECIDABLE
        assert prediction.verdict != am.Verdict.GUARANTEED
