"""Measures of weights, in closed form and by symmetry."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.training.measures import decided


def test_correlation_and_misalignment() -> None:
    W1, W2 = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    c = am.correlation(W1, W2)
    expected = (W1 * W2).sum((-2, -1)) / W1.flatten(1).norm(dim=1) / W2.flatten(1).norm(dim=1)
    torch.testing.assert_close(c, expected)
    torch.testing.assert_close(am.measures.misalignment(W1, W2), 1 - c)
    torch.testing.assert_close(am.correlation(3 * W1, 1e-200 * W2), c)
    assert float(am.correlation(W1[0], 0 * W1[0])) == 0.0


@pytest.mark.parametrize("p", [1.1, 1.75, 2.0, 3.0])
def test_bregman_by_its_definition(p: float) -> None:
    rng = np.random.default_rng(0)
    W1, W2 = rng.standard_normal((2, 3, 4))
    a, b = (W / (np.abs(W) ** p).sum() ** (1 / p) for W in (W1, W2))
    psi = [(np.abs(x) ** p).sum() / p for x in (a, b)]
    expected = psi[0] - psi[1] - (np.sign(b) * np.abs(b) ** (p - 1) * (a - b)).sum()
    assert float(am.bregman(W1, W2, p)) == pytest.approx(expected)
    assert float(am.bregman(W1, 5 * W1, p)) == pytest.approx(0.0, abs=1e-15)
    assert float(am.bregman(W1, W2, 2.0)) == pytest.approx(float(am.measures.misalignment(W1, W2)))


def test_probabilities_of_tokens() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="tokens")
    W = 1e4 * am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data))).W
    torch.testing.assert_close(am.measures.token_probability(data, W), torch.ones(2).double())
    torch.testing.assert_close(
        am.measures.largest_probability(data, 0 * W), torch.full((2,), 0.25).double()
    )
    other = (am.optimal_tokens(data) + 1) % 4
    torch.testing.assert_close(
        am.measures.token_probability(data, W, other), torch.zeros(2).double()
    )


def test_rank_profile() -> None:
    profile = am.measures.rank_profile(torch.diag(torch.tensor([4.0, 2.0, 0.0])))
    assert profile.tolist() == [1.0, 0.5, 0.0]


def test_fit_finds_the_power_and_its_error() -> None:
    rng = np.random.default_rng(0)
    x = np.arange(1, 400)
    fit = am.measures.fit_rate(x, 2.0 * x**-0.7 * np.exp(0.1 * rng.standard_normal(len(x))))
    assert abs(fit.slope + 0.7) < 3 * fit.slope_error
    assert 0.001 < fit.slope_error < 0.02
    assert abs(fit.intercept - np.log(2.0)) < 3 * fit.intercept_error


def test_bad_arguments() -> None:
    with pytest.raises(am.InputError, match="W1 and W2: got shapes"):
        am.correlation(torch.zeros(2, 2), torch.zeros(3, 3))
    with pytest.raises(am.InputError, match="p: got 1"):
        am.bregman(torch.eye(2), torch.eye(2), 1.0)
    with pytest.raises(am.InputError, match="a zero matrix"):
        am.bregman(torch.eye(2), torch.zeros(2, 2), 2.0)
    with pytest.raises(am.InputError, match="2 usable points"):
        am.measures.fit_rate([1.0, 2.0, -1.0], [1.0, 2.0, 3.0])
    with pytest.raises(am.InputError, match="selection: got shape"):
        am.measures.token_probability(am.random_data(3, 4, 5), torch.zeros(5, 5).double(), [0, 1])


def test_zero_and_single_precision() -> None:
    zero, one = torch.zeros(2, 2), torch.eye(2)
    assert float(am.measures.misalignment(zero, one)) == 1.0
    assert float(am.measures.misalignment(one, one)) == 0.0
    assert am.measures.rank_profile(zero).tolist() == [0.0, 0.0]
    with pytest.raises(am.InputError, match="W: got nan"):
        am.measures.rank_profile([[float("nan")]])
    with pytest.raises(am.InputError, match="selection: got tokens from 9 to 9"):
        am.measures.token_probability(
            am.random_data(3, 4, 5), torch.zeros(5, 5).double(), [9, 9, 9]
        )


def test_composed_correlation_by_hand() -> None:
    """W = 3a + 4b lies in the plane; with a part of size 5 across it the cosine is 1/√2."""
    a, b, c = torch.eye(3, dtype=torch.float64).unsqueeze(1)
    assert float(am.measures.composed_correlation(3 * a + 4 * b, 2 * b, a)) == pytest.approx(1.0)
    assert float(
        am.measures.composed_correlation(3 * a + 4 * b + 5 * c, 2 * b, a)
    ) == pytest.approx(0.5**0.5)
    assert float(am.measures.composed_correlation(3 * a, 0 * b, a)) == pytest.approx(1.0)


def test_ties_that_no_weights_can_break_do_not_count() -> None:
    """A zero query, and a sequence that holds its best token twice."""
    data = am.random_data(4, 4, 8, name="tied")
    still, X = data.z.clone(), data.X.clone()
    still[0] = 0.0
    best = int(am.optimal_tokens(data)[0])
    X[0, (best + 1) % 4] = X[0, best]
    for tied in (am.AttentionData(data.X, still, data.y, data.v),
                 am.AttentionData(X, data.z, data.y, data.v)):  # fmt: skip
        run = am.train(tied, steps=2000, record=2000)
        assert [bool(decided(tied, W)) for W in run.W] == [False, True]
    many = am.random_data(2, 5000, 4, name="many")
    assert bool(decided(many, am.train(many, steps=3, record=3).W[-1]))
