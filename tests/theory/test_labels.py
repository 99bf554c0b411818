"""Assumption B and Theorem 5 of paper B, against brute force over heads and weights."""

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.papers.b.examples import example_1, example_2

HOLDS, FAILS = am.theory.Outcome.HOLDS, am.theory.Outcome.FAILS
OPEN = am.theory.Outcome.UNDECIDABLE
NU = "ν (label margin lost per attention lost)"


def margin_by_angles(rows: Tensor, p: float) -> float:
    """max min_i rows_iᵀ v over ‖v‖_p = 1 in the plane, on a grid of angles that is refined."""
    low, high, best = 0.0, 2.0 * np.pi, 0.0
    for _ in range(4):
        angle = np.linspace(low, high, 4001)
        v = np.stack((np.cos(angle), np.sin(angle)))
        v /= (np.abs(v) ** p).sum(0) ** (1.0 / p)
        least = (rows.numpy() @ v).min(0)
        best, at = float(least.max()), float(angle[least.argmax()])
        width = (high - low) / 1000.0
        low, high = at - width, at + width
    return best


@pytest.mark.parametrize(
    ("data", "p", "selection"),
    [(example_1(), 1.75, [0, 0]), (example_1(), 2.0, [0, 0]), (example_1(), 3.0, [0, 0]),
     (example_2(), 1.75, [1, 0]), (example_2(), 3.0, [0, 0])],
)  # fmt: skip
def test_the_examples_of_the_paper_are_certified(
    data: am.AttentionData, p: float, selection: list[int]
) -> None:
    """Γ − Γ' ≥ ν (1 − s_iα) at random attention, with Γ' by brute force over the head."""
    assumption, theorem = am.theory.check_joint(data, p)  # the tokens of largest label margin
    given = am.theory.check_joint(data, p, selection)
    assert assumption.outcome == theorem.outcome == given[0].outcome == HOLDS
    margin, nu = (float(given[0].numbers[name]) for name in ("label margin", NU))
    assert data.y is not None
    own = data.X[torch.arange(2), selection] * data.y.unsqueeze(-1)
    assert margin == pytest.approx(margin_by_angles(own, p), rel=1e-6)
    rng = np.random.default_rng(0)
    for k in range(150):
        s = torch.from_numpy(rng.dirichlet(np.full(data.T, (0.05, 0.3, 1.0)[k % 3]), 2))
        rows = torch.einsum("nt,ntd->nd", s, data.X) * data.y.unsqueeze(-1)
        lost = float((1.0 - s[torch.arange(2), selection]).max())
        assert margin - margin_by_angles(rows, p) >= nu * lost - 1e-6


def test_another_selection_of_example_2_fails() -> None:
    assert am.theory.check_joint(example_2(), 1.75, [0, 0])[1].outcome == FAILS
    assert am.theory.check_joint(example_2(), 3.0, [1, 0])[1].outcome == FAILS


def beyond_the_margin() -> am.AttentionData:
    """y x = 1 and 3: the second sequence is no support vector, though its swap is worse."""
    X = [[[1.0, 0.0], [-1.0, 0.0]], [[-3.0, 0.0], [1.0, 0.0]]]
    return am.AttentionData(X, [[1.0, 0.0], [0.0, 1.0]], [1, -1], [1.0, 0.0])


def test_a_sequence_that_is_no_support_vector_refutes_it() -> None:
    """Its attention can leave at no cost, while that of the other does not."""
    data = beyond_the_margin()
    assert data.y is not None
    check = am.theory.check_joint(data)[0]
    assert check.outcome == FAILS
    assert float(check.numbers["largest after exchanging one token"]) == 0.0
    assert am.predict(data).check("B: Assumption B").outcome == FAILS
    # Along W the first sequence keeps 1 − e^{−4R}, the second 1 − e^{−2R}: Γ' = 1 − O(e^{−4R}).
    ratios = []
    for R in (1.0, 2.0, 4.0):
        s = am.probabilities(data, R * torch.tensor([[2.0, -0.5], [0.0, 0.0]]).double())
        rows = torch.einsum("nt,ntd->nd", s, data.X) * data.y.unsqueeze(-1)
        ratios.append((1.0 - margin_by_angles(rows, 2.0)) / float(1.0 - s[1, 0]))
    assert ratios[0] > 5 * ratios[1] > 25 * ratios[2]


def test_sequences_that_share_their_rows_refute_nothing() -> None:
    """Both lose the same attention, whatever W: then Γ − Γ' is in proportion to it."""
    X = [[[1.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [2.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1])
    assert am.theory.check_joint(data)[0].outcome == OPEN


def test_labels_that_no_head_separates() -> None:
    X = [[[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [3.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0], [0.0, 1.0]], [1, -1])
    assert [c.outcome for c in am.theory.check_joint(data)] == [FAILS, FAILS]


def test_batch_equals_loop() -> None:
    data = am.random_data(2, 3, 2, trials=6, name="labels loop")
    together = am.theory.check_joint(data, 1.75)
    for k in range(6):
        for several, one in zip(together, am.theory.check_joint(data[k], 1.75), strict=True):
            assert several[k].outcome == one.outcome
            for name, number in one.numbers.items():
                torch.testing.assert_close(several[k].numbers[name], number)


def test_labels_are_needed() -> None:
    with pytest.raises(am.InputError, match="data: got no labels; needs labels y"):
        am.theory.check_joint(am.AttentionData([[[2.0]]], [[1.0]]))
