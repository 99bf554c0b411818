"""Predictions and verdicts."""

import re
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.instances import contradiction, counterexample_to_theorem_4, identity_data, orthonormal


def test_a_prediction_by_hand() -> None:
    """One sequence, one query, tokens 2, 1 and −5 on a line: W = 1, guarded by the second."""
    data = am.AttentionData([[[2.0], [1.0], [-5.0]]], [[1.0]], [1], [1.0])
    prediction = am.predict(data)
    assert prediction.selection.tolist() == [0]
    assert prediction.direction.tolist() == [[1.0]]
    assert float(prediction.margin) == 1.0
    assert prediction.support.tolist() == [[False, True, False]]
    assert prediction.verdict == am.Verdict.GUARANTEED
    assert prediction.solution.status == am.Status.OPTIMAL


@pytest.mark.parametrize(
    ("how", "norm"),
    [({}, "fro"), ({"parameter": "KQ"}, "nuc"), ({"p": 1.75}, 1.75), ({"p": 3}, 3.0)],
)
def test_the_direction_is_that_of_the_solver(how: dict[str, object], norm: str | float) -> None:
    data = am.random_data(3, 4, 5, name="direction")
    prediction = am.predict(data, **how)  # type: ignore[arg-type]
    expected = am.solve(am.token_problem(data.X, data.z, prediction.selection), norm)
    torch.testing.assert_close(prediction.direction, expected.W)
    assert prediction.norm.name == expected.norm.name


def test_a_conjecture_is_not_a_guarantee() -> None:
    """(K, Q): B.1 and D hold for orthonormal data, and no theorem about descent applies."""
    prediction = am.predict(identity_data(), parameter="KQ", steps=2000)
    assert prediction.verdict == am.Verdict.CONJECTURED
    assert prediction.explain().endswith("gradient flow from here keeps these tokens for ever.")
    check = prediction.check("A: Conjecture of Section 5.2")  # the paper states it for W
    assert check.outcome == am.theory.Outcome.UNDECIDABLE


def test_alternatives_are_listed_with_their_margins() -> None:
    prediction = am.predict(counterexample_to_theorem_4())
    search = prediction.search
    assert search is not None
    assert search.selections.tolist() == [[0, 0], [1, 0]]
    expected = [float(am.solve(am.token_problem(prediction.data.X, prediction.data.z, s)).margin)
                for s in search.selections]  # fmt: skip
    assert search.margin.tolist() == pytest.approx(expected)


def test_batch_equals_loop() -> None:
    data = am.random_data(3, 4, 4, trials=5, name="predict loop")
    together = am.predict(data)
    for index in range(5):
        one, member = am.predict(data[index]), together[index]
        assert member.verdict == one.verdict
        assert torch.equal(member.selection, one.selection)
        torch.testing.assert_close(member.direction, one.direction)
        assert str(member.search) == str(one.search)
    with pytest.raises(am.InputError, match=r"needs one of them: prediction\[index\]"):
        _ = together.search


def test_several_queries_and_masks() -> None:
    base = am.random_data(2, 3, 8, name="causal")
    z = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]], dtype=torch.float64)
    causal = torch.ones(3, 3, dtype=torch.bool).tril().expand(2, 3, 3)
    data = am.AttentionData(base.X, z, y, base.v, causal)
    prediction = am.predict(data)
    assert prediction.selection.shape == (2, 3)
    assert prediction.selection[:, 0].tolist() == [0, 0]
    assert prediction.verdict in (am.Verdict.FROM_START, am.Verdict.GUARANTEED)
    assert bool(am.confirm(prediction).agrees)


def test_dtype_is_kept() -> None:
    data = am.random_data(3, 3, 6, name="dtype")
    assert data.y is not None
    assert data.v is not None
    single = am.AttentionData(*(part.float() for part in (data.X, data.z, data.y, data.v)))
    prediction = am.predict(single)
    assert prediction.direction.dtype == torch.float32
    assert torch.equal(prediction.selection, am.predict(data).selection)
    assert prediction.verdict == am.predict(data).verdict


def test_one_query_in_the_shape_of_several() -> None:
    data = am.random_data(3, 3, 4, name="single")
    assert data.y is not None
    wide = am.AttentionData(data.X, data.z.unsqueeze(1), data.y.unsqueeze(1), data.v)
    first, second = am.predict(data), am.predict(wide)
    assert second.selection.shape == (3, 1)
    assert first.verdict == second.verdict
    assert torch.equal(first.support, second.support.squeeze(1))


def test_single_tokens_leave_nothing_to_choose() -> None:
    """Both labels with one query: no side of a plane, no theorem, and nothing to choose."""
    data = am.AttentionData([[[1.0, 2.0]], [[3.0, 4.0]]], [[1.0, 0.0]] * 2, [1, -1], [1.0, 0.0])
    prediction = am.predict(data)
    assert prediction.verdict == am.Verdict.GUARANTEED
    assert prediction.selection.tolist() == [0, 0]
    assert bool(am.confirm(prediction, steps=10).agrees)


def test_an_empty_batch() -> None:
    data = am.random_data(2, 2, 3, trials=2, name="empty")[:0]
    prediction = am.predict(data)
    assert prediction.verdict.shape == (0,)
    assert am.predict(
        data, head=am.heads.QuadraticHead(torch.ones(3).double(), 1.0)
    ).verdict.shape == (0,)


def test_members_by_a_tensor() -> None:
    prediction = am.predict(am.random_data(2, 2, 3, trials=3, name="members"))
    for index in (torch.tensor([1]), torch.tensor([False, True, False]), [1], slice(1, 2)):
        member = prediction[index]
        assert member.data.batch_shape == member.verdict.shape == member.since.shape == (1,)
        assert member.checks[0].outcome.shape == member.selection.shape[:1] == (1,)
    with pytest.raises(am.InputError, match=r"index: got 7 for a batch of shape \(3,\)"):
        _ = prediction[7]


def test_a_prediction_moves_with_its_data() -> None:
    """On the only device that every machine has: all parts are there, and equal."""
    data = am.random_data(2, 3, 4, trials=2, name="device")
    prediction = am.predict(data)
    moved = prediction.beside(data.to("cpu"))
    assert torch.equal(moved.direction, prediction.direction)
    assert torch.equal(moved[0].search.selections, prediction[0].search.selections)  # type: ignore[union-attr]
    assert list(moved.verdict) == list(prediction.verdict)
    assert torch.equal(moved.solution.certificate.gap, prediction.solution.certificate.gap)


def test_single_tokens_of_a_head_that_is_not_linear_are_no_conjecture() -> None:
    data = am.random_data(2, 3, 4, name="vertex")
    assert data.v is not None
    assert (
        am.predict(data, head=am.heads.QuadraticHead(data.v, 0.0)).verdict == am.Verdict.UNDECIDED
    )


def test_mixtures_in_single_precision() -> None:
    data = orthonormal(1, 4)[0]
    assert data.y is not None
    assert data.v is not None
    single = am.AttentionData(*(part.float() for part in (data.X, data.z, data.y, data.v)))
    head = am.heads.QuadraticHead(data.v.float(), 0.5)
    prediction = am.predict(single, head=head)
    assert prediction.direction.dtype == torch.float32
    double = am.predict(data, head=am.heads.QuadraticHead(data.v, 0.5))
    assert torch.equal(prediction.selection, double.selection)


def test_a_repeated_token_makes_a_mixture_ambiguous() -> None:
    data = orthonormal(1, 4)[0]
    X = torch.cat((data.X, data.X[:, :1]), 1)
    twice = am.AttentionData(X, data.z, data.y, data.v)
    prediction = am.predict(twice, head=am.heads.QuadraticHead(data.v, 2.0))
    assert prediction.check("A: The mixture is unique").outcome == am.theory.Outcome.FAILS
    assert prediction.verdict == am.Verdict.UNDECIDED


def test_equal_tokens_are_one() -> None:
    data = am.AttentionData([[[1.0], [2.0]], [[3.0], [3.0]]], [[1.0]] * 2, [1, 1], [1.0])
    prediction = am.predict(data)
    assert prediction.selection.tolist() == [1, 0]
    assert prediction.verdict == am.Verdict.FROM_START
    assert float(prediction.margin) == 1.0


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"parameter": "vW"}, "parameter: got 'vW'; needs one of W, KQ"),
        ({"parameter": "KQ", "p": 3.0}, "p: got 3 with parameter 'KQ'; needs 2"),
        ({"p": 1.0}, "p: got 1; needs a power from 1.1 to 10"),
        ({"loss": "hinge"}, "loss: got 'hinge'"),
    ],
)
def test_unknown_options(how: dict[str, object], text: str) -> None:
    with pytest.raises(am.InputError) as error:
        am.predict(am.random_data(2, 2, 2, name="options"), **how)  # type: ignore[arg-type]
    assert text in str(error.value)


def test_no_labels_or_no_head() -> None:
    with pytest.raises(am.InputError, match="y: got nothing"):
        am.predict(am.AttentionData([[[1.0], [2.0]]], [[1.0]]))


def test_a_contradiction_is_predicted_not_raised() -> None:
    prediction = am.predict(contradiction())
    assert prediction.solution.status == am.Status.INFEASIBLE
    assert bool(torch.isnan(prediction.margin))


def test_lemma_6_bounds_the_mixture() -> None:
    """Score gaps 0.1, 0.1, 1.0 and λ between 0.1 and 3 · 1.0 / 2: two or three tokens."""
    data = identity_data((1,), (1.2, 1.1, 1.0, 0.0))
    head = am.heads.QuadraticHead(data.v, 0.5)
    prediction = am.predict(data, loss="linear", head=head)
    check = prediction.check("A: Lemma 6")
    assert check.outcome == am.theory.Outcome.HOLDS
    assert 2 <= int(prediction.selection.sum()) <= 3
    outside = am.predict(data, loss="linear", head=am.heads.QuadraticHead(data.v, 0.04))
    assert outside.check("A: Lemma 6").outcome == am.theory.Outcome.FAILS
    assert outside.check("A: Assumption E").outcome == am.theory.Outcome.HOLDS
    assert prediction.check("A: Assumption E").outcome == am.theory.Outcome.FAILS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"p": "x"}, "p: got 'x'; needs a number p > 1"),
        ({"p": None}, "p: got None"),
        ({"p": [2.0, 3.0]}, "p: got"),
        ({"p": 10**400}, "p: got 1000"),
        ({"loss": ["logistic"]}, "loss: got"),
    ],
)
def test_odd_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError, match=re.escape(words)):
        am.predict(am.random_data(2, 3, 4, name="odd"), **options)


@pytest.mark.parametrize(
    "call", [am.predict, am.scores, am.optimal_tokens, am.theory.check_theory,
             am.selections.local_selections, am.train],
)  # fmt: skip
def test_arrays_are_no_data(call: Any) -> None:
    with pytest.raises(am.InputError, match="data: got a ndarray; needs an instance of"):
        call(np.zeros((2, 3, 4)))
    with pytest.raises(am.InputError, match="prediction: got a ndarray"):
        am.confirm(np.zeros(3))  # type: ignore[arg-type]


LOCAL = ("A: Theorem 7", "B: Theorem 2", "B: Theorem 3", "B: Theorem 4")


def test_checks_ask_about_the_start_of_the_run() -> None:
    data = am.random_data(3, 3, 4, trials=2, name="start", min_gap=0.2)
    free = am.predict(data, steps=10)
    far = 1e9 * free.solution.W
    near, zero = (am.predict(data, init=W, steps=10) for W in (far, 0.0 * far))
    for name in LOCAL:
        for prediction, outcome in ((free, "holds"), (near, "holds"), (zero, "fails")):
            assert set(prediction.check(name).outcome) == {outcome}, name
    own = {c.label: c.outcome for c in am.theory.check_theory(data, init=far)}
    for check in near.checks:
        assert np.array_equal(check.outcome, own[check.label]), check.label
    for k in range(2):  # members of a batch keep their own start
        assert near[k].check("A: Theorem 7").outcome == "holds"
    mixed = am.predict(data, init=torch.stack((far[0], 0.0 * far[1])), steps=10)
    assert mixed.check("A: Theorem 7").outcome.tolist() == ["holds", "fails"]


def test_checks_ask_about_given_factors() -> None:
    data, K = am.random_data(2, 3, 4, name="factors"), torch.ones(4, 2).double()
    assert "‖K Qᵀ‖⋆" not in am.predict(data, "KQ", steps=10).check("A: Lemma 15").numbers
    numbers = am.predict(data, "KQ", init=(K, K), steps=10).check("A: Lemma 15").numbers
    assert float(numbers["‖K Qᵀ‖⋆"]) == pytest.approx(8.0)
    random = am.predict(data, init="random", steps=10)
    assert "norm of W(0)" in random.check("B: Theorem 3").numbers
