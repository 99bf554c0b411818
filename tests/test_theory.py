"""Checks of assumptions and theorems on data where the answer is known."""

import math

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_b import radius


def outcome(data: am.AttentionData, label: str, **how: object) -> am.theory.Outcome:
    return am.predict(data, **how).check(label).outcome  # type: ignore[arg-type]


def identity_data(labels: tuple[int, ...] = (1, 1), gaps: tuple[float, ...] = (3.0, 2.0, 1.0)):  # type: ignore[no-untyped-def]
    """Orthonormal tokens and queries: every row is orthogonal to those of other sequences."""
    n, T = len(labels), len(gaps)
    d = n * T + n
    E = torch.eye(d, dtype=torch.float64)
    X = E[: n * T].reshape(n, T, d)
    v = torch.zeros(d, dtype=torch.float64)
    v[: n * T] = torch.tensor(gaps, dtype=torch.float64).repeat(n)
    y = torch.tensor(labels, dtype=torch.float64)
    v[: n * T] *= y.repeat_interleave(T)
    return am.AttentionData(X, E[n * T :], y, v)


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


def counterexample_to_theorem_4() -> am.AttentionData:
    """docs/errata.md: two tokens per sequence, so that B.2 holds, and a trap."""
    X = [[[-2.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]]
    return am.AttentionData(X, [[1.0, 0.0], [1.0, 0.0]], [1, 1], [3.0, 6.1])


def test_theorem_4_needs_more_than_b2() -> None:
    """Gradient descent from zero, with the step size of the theorem, selects another token."""
    data = counterexample_to_theorem_4()
    prediction = am.predict(data)
    assert prediction.check("A: Assumption B.2").outcome == am.theory.Outcome.HOLDS
    assert prediction.check("A: Theorem 4").outcome == am.theory.Outcome.FAILS
    assert prediction.check("A: Lemma 5").outcome == am.theory.Outcome.FAILS
    assert prediction.verdict == am.Verdict.DEPENDS
    run = am.train(data, lr="auto", normalize=False, steps=100_000, record=100_000)
    assert prediction.selection.tolist() == [0, 0]
    assert run.selection[-1].tolist() == [1, 0]
    assert prediction.search is not None
    assert run.selection[-1] in prediction.search


def counterexample_to_theorem_6() -> am.AttentionData:
    """docs/errata.md: Assumption C holds, and short steps end elsewhere."""
    X = [[[0.07, -1.0], [0.8, 0.6], [-1.0, -0.07]], [[-0.5, -0.87], [0.77, -0.64], [0.72, -0.69]]]
    return am.AttentionData(X, [[0.39, 0.92], [-0.76, -0.65]], [1, -1], [0.17, -0.99])


def test_theorem_6_needs_a_long_first_step() -> None:
    data = counterexample_to_theorem_6()
    prediction = am.predict(data)
    check = prediction.check("A: Theorem 6")
    assert prediction.check("A: Assumption C").outcome == check.outcome == am.theory.Outcome.HOLDS
    assert prediction.verdict == am.Verdict.DEPENDS
    short = am.train(data, lr=0.01, steps=20_000, record=20_000)
    assert short.selection[-1].tolist() != prediction.selection.tolist()
    G, _ = am.gradient(data, np.zeros((2, 2)))
    length = float(check.numbers["length of a first step that suffices"])
    long = am.train(data, init=-length * G / G.norm(), lr=0.01, steps=20_000, record=20_000)
    assert torch.equal(long.selection[-1], prediction.selection)


def test_the_first_step_ends_below_the_level_and_a_shorter_one_does_not() -> None:
    data = identity_data((1, -1))
    facts = Facts(data)
    length = float(facts.first_step)
    # Γ = 2, the gap is 1, and A = max ‖x‖ ‖z‖ ‖W‖ = √2 · √(4/3).
    q = 1.0 / (4.0 * 2.0 * math.sqrt(2.0) * math.sqrt(4.0 / 3.0))

    def excess(r: float) -> float:
        s = am.probabilities(data, r * facts.first_direction)
        u = (s * am.scores(data)).sum(-1)
        best = am.scores(data).amax(-1)
        return float(
            (torch.nn.functional.softplus(-u) - torch.nn.functional.softplus(-best)).mean()
        )

    best = am.scores(data).amax(-1)
    cost = torch.nn.functional.softplus(-(best - q)) - torch.nn.functional.softplus(-best)
    level = float(cost.amin()) / 2
    assert excess(length * 1.0001) < level < excess(length * 0.999)


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
    assert prediction.verdict == am.Verdict.DEPENDS
    result = am.confirm(prediction, steps=20_000)
    assert result.selection.tolist() == [0, 0, 0, 0]
    assert bool(result.listed)


def test_a_word_that_stands_twice_is_a_mixture_that_no_search_sees() -> None:
    X = [[[-2.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]
    prediction = am.predict(am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1], [3.0, 6.1]))
    assert prediction.verdict == am.Verdict.DEPENDS
    assert prediction.check("A: Assumption D").outcome == am.theory.Outcome.UNDECIDABLE


def test_there_is_no_point_of_rest_if_queries_lie_on_one_side() -> None:
    """⟨∇L, v uᵀ⟩ = (1/n) Σ ℓ' Var(γ) y uᵀz, at random W; two opposite queries have no side."""
    data = am.random_data(3, 4, 5, name="side")
    assert data.v is not None
    assert data.y is not None
    facts = Facts(data)
    assert bool(facts.one_sided)
    u = torch.linalg.lstsq(
        data.z * data.y.unsqueeze(-1), torch.ones(3, 1, dtype=torch.float64)
    ).solution
    W = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    G, scale = am.gradient(data, W)
    s, gamma = am.probabilities(data, W), am.scores(data)
    mean = (s * gamma).sum(-1)
    variance = (s * gamma**2).sum(-1) - mean**2
    slope = -torch.sigmoid(-mean)
    expected = (slope * variance * (data.y * (data.z @ u)[:, 0])).mean()
    torch.testing.assert_close((G * torch.outer(data.v, u[:, 0])).sum() * scale.exp(), expected)
    assert float(expected) < 0
    assert not bool(Facts(contradiction()).one_sided)


def test_squared_loss_fails_assumption_a_above_one() -> None:
    data = identity_data()  # the best score is 3
    check = am.predict(data, loss="squared").check("A: Assumption A")
    assert check.outcome == am.theory.Outcome.FAILS
    small = am.AttentionData(data.X, data.z, data.y, 0.1 * data.v)
    assert outcome(small, "A: Assumption A", loss="squared") == am.theory.Outcome.HOLDS


def contradiction() -> am.AttentionData:
    """The same tokens and query with both labels: one wants the order that the other forbids."""
    X = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    return am.AttentionData(X, [[1.0, 1.0]] * 2, [1, -1], [1.0, 0.0])


def test_infeasible_data() -> None:
    prediction = am.predict(contradiction())
    assert prediction.check("A: (Att-SVM) is feasible").outcome == am.theory.Outcome.FAILS
    for name in ("Theorem 2", "Theorem 6", "Theorem 7", "Conjecture of Section 5.2"):
        assert prediction.check(f"A: {name}").outcome == am.theory.Outcome.FAILS, name
    assert prediction.verdict == am.Verdict.DEPENDS
    assert not prediction.feasible


def test_the_radius_of_paper_b_by_hand() -> None:
    """No token but support tokens: δ = 1/4; ‖xzᵀ‖ = 1, so A = max(1, ‖W‖)."""
    facts = Facts(identity_data())
    W = facts.solution.W
    assert float(radius(facts)) == pytest.approx(0.5 * (0.25 / (8.0 * float(W.norm()))) ** 2)
    cubic = Facts(identity_data(), p=3.0)
    A = max(1.0, float(cubic.solution.value))
    assert float(radius(cubic)) == pytest.approx((0.25 / (8.0 * A)) ** 3 / 3.0)
    low = Facts(identity_data(), p=1.5)
    A, d = max(1.0, float(low.solution.value)), low.data.d
    expected = (0.25 * 0.5 / (4.0 * A * d ** (1.0 / 3.0))) ** 2 / 1.5
    assert float(radius(low)) == pytest.approx(expected)


def test_assumption_b_of_paper_b_is_refuted_by_a_better_token() -> None:
    X = [[[2.0, 0.0], [1.0, 9.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [1], [1.0, 0.0])
    check = am.predict(data).check("B: Assumption B")
    assert check.outcome == am.theory.Outcome.FAILS
    assert float(check.numbers["label margin"]) == pytest.approx(2.0)
    assert float(check.numbers["largest after exchanging one token"]) == pytest.approx(82.0**0.5)


def test_every_statement_of_the_four_papers_has_a_row() -> None:
    labels = [check.label for check in am.theory.check_theory(identity_data())]
    expected = [f"A: Theorem {k}" for k in range(1, 10)] + [f"A: Lemma {k}" for k in range(1, 7)]
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


def test_theorems_about_w_are_silent_about_factors_and_mirror_descent() -> None:
    for how in ({"parameter": "KQ"}, {"p": 3.0}):
        prediction = am.predict(identity_data(), **how)
        for name in ("Theorem 3", "Theorem 4", "Theorem 6", "Theorem 7"):
            assert prediction.check(f"A: {name}").outcome == am.theory.Outcome.UNDECIDABLE
        assert prediction.verdict != am.Verdict.GUARANTEED


def test_a_check_in_words() -> None:
    check = am.theory.check_theory(identity_data())[0]
    assert str(check) == "A: Theorem 1: holds (token width d 8, needed, max(T − 1, n) 2)"
