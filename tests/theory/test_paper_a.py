"""Checks of paper A on data where the answer is known."""

import math

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.instances import contradiction, counterexample_to_theorem_4, identity_data


def outcome(data: am.AttentionData, label: str, **how: object) -> am.theory.Outcome:
    return am.predict(data, **how).check(label).outcome  # type: ignore[arg-type]


def test_orthonormal_data_satisfy_everything_that_wide_tokens_promise() -> None:
    """All rows of a sequence meet at 60°: all tokens are support tokens, whatever is selected."""
    prediction = am.predict(identity_data((1, -1)))
    for name in ("Theorem 1", "Assumption B.1", "Theorem 3", "Assumption C", "Theorem 6",
                 "Assumption D", "Assumption D, stronger form", "Conjecture of Section 5.2",
                 "Theorem 8", "Lemma 5", "Assumption E", "Theorem 9"):  # fmt: skip
        assert prediction.check(f"A: {name}").outcome == am.theory.Outcome.HOLDS, name
    assert prediction.check("A: Assumption B.2").outcome == am.theory.Outcome.FAILS
    assert prediction.verdict == am.Verdict.GUARANTEED
    assert float(prediction.check("A: Assumption B.1").numbers["share of support tokens"]) == 1.0


def test_the_margin_of_orthonormal_tokens_in_closed_form() -> None:
    """w = (2, −1, −1)/3 per sequence: ‖w‖² = 2/3, for n sequences 2n/3."""
    prediction = am.predict(identity_data())
    assert float(prediction.margin) == pytest.approx(math.sqrt(3.0 / 4.0), abs=1e-12)
    average = prediction.check("A: Assumption B.1, by average margin").numbers["average margin"]
    assert float(average) == pytest.approx(1.0)


def test_assumption_b2_by_hand() -> None:
    equal = identity_data((1,), (3.0, 1.0, 1.0))
    assert outcome(equal, "A: Assumption B.2") == am.theory.Outcome.HOLDS
    assert outcome(equal, "A: Theorem 4") == am.theory.Outcome.HOLDS
    assert am.predict(equal).verdict == am.Verdict.GUARANTEED
    nearly = identity_data((1,), (3.0, 1.0, 1.001))
    assert outcome(nearly, "A: Assumption B.2") == am.theory.Outcome.FAILS
    delta = am.predict(nearly).check("A: Theorem 5").numbers
    assert float(delta["δ: largest difference of such scores"]) == pytest.approx(0.001)


def test_theorem_4_needs_more_than_b2() -> None:
    """Gradient descent from zero, with the step size of the theorem, selects another token."""
    data = counterexample_to_theorem_4()
    prediction = am.predict(data)
    assert prediction.check("A: Assumption B.2").outcome == am.theory.Outcome.HOLDS
    assert prediction.check("A: Theorem 4").outcome == am.theory.Outcome.FAILS
    assert prediction.check("A: Lemma 5").outcome == am.theory.Outcome.FAILS
    run = am.train(data, lr="auto", normalize=False, steps=100_000, record=100_000)
    assert prediction.best.tolist() == [0, 0]
    assert run.selection[-1].tolist() == [1, 0]
    assert prediction.verdict == am.Verdict.FROM_START
    assert prediction.selection.tolist() == [1, 0]
    assert prediction.alternatives.tolist() == [[0, 0]]


def counterexample_to_theorem_6() -> am.AttentionData:
    """docs/errata.md: Assumption C holds, and short steps end elsewhere."""
    X = [[[0.07, -1.0], [0.8, 0.6], [-1.0, -0.07]], [[-0.5, -0.87], [0.77, -0.64], [0.72, -0.69]]]
    return am.AttentionData(X, [[0.39, 0.92], [-0.76, -0.65]], [1, -1], [0.17, -0.99])


def test_theorem_6_needs_a_long_first_step() -> None:
    data = counterexample_to_theorem_6()
    prediction = am.predict(data)
    check = prediction.check("A: Theorem 6")
    assert prediction.check("A: Assumption C").outcome == check.outcome == am.theory.Outcome.HOLDS
    assert prediction.verdict != am.Verdict.GUARANTEED
    short = am.train(data, lr=0.01, steps=20_000, record=20_000)
    assert short.selection[-1].tolist() != prediction.best.tolist()
    assert torch.equal(short.selection[-1], am.predict(data, lr=0.01).selection)
    G, _ = am.gradient(data, np.zeros((2, 2)))
    length = float(check.numbers["length of a first step that suffices"])
    long = am.train(data, init=-length * G / G.norm(), lr=0.01, steps=20_000, record=20_000)
    assert torch.equal(long.selection[-1], prediction.best)


def test_theorem_5_is_not_true_for_equal_scores_either() -> None:
    prediction = am.predict(counterexample_to_theorem_4())
    assert prediction.check("A: Theorem 5").outcome == am.theory.Outcome.FAILS


def degenerate() -> am.AttentionData:
    """The fourth row is the sum of the first two less the third: its multiplier can be zero."""
    X = [[row, [0.0, 0.0, 0.0]] for row in ([1.0, 2, 0], [1.0, -1, 2], [1.0, -1, -2], [1.0, 2, 4])]
    return am.AttentionData(X, [[1.0, 0, 0]] * 4, [1, 1, 1, -1], [1.0, -0.1, -0.19])


def test_a_token_that_pulls_without_need_does_not_exclude_a_selection() -> None:
    """[0, 0, 0, 0] is not locally optimal by Definition 2, and training stays with it."""
    prediction = am.predict(degenerate())
    assert prediction.search is not None
    assert prediction.search.selections.tolist() == [[0, 0, 0, 1]]
    assert [0, 0, 0, 0] in prediction.search.marginal.tolist()
    assert prediction.verdict != am.Verdict.GUARANTEED
    assert prediction.selection.tolist() == [0, 0, 0, 0]
    result = am.confirm(prediction, steps=20_000)
    assert result.selection.tolist() == [0, 0, 0, 0]


def test_a_word_that_stands_twice_is_a_mixture_that_no_search_sees() -> None:
    X = [[[-2.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]
    prediction = am.predict(am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1], [3.0, 6.1]))
    assert prediction.verdict != am.Verdict.GUARANTEED
    assert prediction.check("A: Assumption D").outcome == am.theory.Outcome.UNDECIDABLE


def test_squared_loss_fails_assumption_a_above_one() -> None:
    data = identity_data()  # the best score is 3
    check = am.predict(data, loss="squared").check("A: Assumption A")
    assert check.outcome == am.theory.Outcome.FAILS
    small = am.AttentionData(data.X, data.z, data.y, 0.1 * data.v)
    assert outcome(small, "A: Assumption A", loss="squared") == am.theory.Outcome.HOLDS


def test_lemma_2_needs_no_separating_weights() -> None:
    """Every W has more loss than the optimal tokens, even where no W separates them."""
    data = contradiction()
    prediction = am.predict(data)
    check = prediction.check("A: Lemma 2")
    assert check.outcome == am.theory.Outcome.HOLDS
    assert prediction.check("A: Lemma 2, the limit").outcome == am.theory.Outcome.FAILS
    generator = torch.Generator().manual_seed(0)
    least = float(check.numbers["least loss"])
    for size in (0.1, 1.0, 10.0, 100.0):
        W = size * torch.randn(2, 2, generator=generator).double()
        u = (am.probabilities(data, W) * am.scores(data)).sum(-1)
        # The softmax of the two sequences is the same, with opposite scores: ℓ(s) + ℓ(s − 1).
        assert float(torch.nn.functional.softplus(-u).mean()) > least + 0.1
    same = identity_data((1, 1), (2.0, 2.0, 2.0))
    assert outcome(same, "A: Lemma 2") == am.theory.Outcome.FAILS  # all tokens are optimal


def test_lemma_4_bounds_the_gradients_in_the_factors() -> None:
    """By autograd at pairs of points; the bound that the paper prints, ‖Q‖ L_W, is exceeded."""
    data = am.AttentionData([[[1.0], [0.0]]], [[1.0]], [1], [1.0])

    def slope(k: float, q: float) -> torch.Tensor:
        K, Q = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (k, q))
        loss = torch.nn.functional.softplus(-torch.sigmoid(K * Q))
        return torch.stack(torch.autograd.grad(loss, (K, Q)))

    for k, q in ((0.0, 1000.0), (0.1, 2.0), (-3.0, 0.5)):
        found = am.theory.check_theory(data, "KQ", init=([[k]], [[q]]))
        check = next(c for c in found if c.label == "A: Lemma 4")
        assert check.outcome == am.theory.Outcome.HOLDS
        L_W = float(check.numbers["L_W, largest rate of change of the gradient"])
        L_K, L_Q = (float(check.numbers[x]) for x in ("L_K = ‖Q‖² L_W", "L_Q = ‖K‖² L_W"))
        assert pytest.approx(q * q * L_W) == L_K
        assert pytest.approx(k * k * L_W) == L_Q
        rates = [abs(float(slope(k + h, q)[0] - slope(k, q)[0])) / h for h in (1e-6, 0.01, 1.0)]
        assert max(rates) <= L_K
        if q == 1000.0:
            assert max(rates) > q * L_W


def test_the_width_that_is_expected_to_suffice_for_b1() -> None:
    """d ≥ (T + n) log(T + n), Section 4.1."""
    for d, expected in ((10, am.theory.Outcome.FAILS), (11, am.theory.Outcome.HOLDS)):
        data = am.random_data(3, 3, d, trials=8, name="width")  # 6 log 6 = 10.75
        found = {c.label: c for c in am.theory.check_theory(data)}
        check = found["A: Assumption B.1, by width"]
        assert (check.outcome == expected).all()
        needed = check.numbers["(T + n) log(T + n)"].tolist()
        assert needed == pytest.approx([6 * math.log(6)] * 8)
    # All rows tight: the solution interpolates them, which least squares decides as well.
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    rows = torch.einsum("bmd,bme->bmde", problem.left, problem.right).flatten(2)
    shortest = torch.linalg.lstsq(rows @ rows.mT, problem.bound.unsqueeze(-1)).solution[..., 0]
    assert (found["A: Assumption B.1"].outcome == am.theory.Outcome.HOLDS).tolist() == (
        (shortest >= 0).all(-1).tolist()
    )


def test_infeasible_data() -> None:
    prediction = am.predict(contradiction())
    assert prediction.check("A: (Att-SVM) is feasible").outcome == am.theory.Outcome.FAILS
    for name in ("Theorem 2", "Theorem 6", "Theorem 7", "Conjecture of Section 5.2"):
        assert prediction.check(f"A: {name}").outcome == am.theory.Outcome.FAILS, name
    assert prediction.verdict == am.Verdict.UNDECIDED
    assert not prediction.feasible
