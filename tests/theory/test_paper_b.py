"""Checks of paper B on data where the answer is known."""

import pytest
import torch

import attnmargin as am
from attnmargin.margin.norms import Lp
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_b import lemma_17, radius, remark_1
from tests.instances import identity_data


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


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_remark_1_by_the_hessian_of_autograd(p: float) -> None:
    """ψ − η L is convex at W(0) for the η that is reported."""
    data = am.random_data(2, 3, 3, name="remark")
    W = torch.randn(3, 3, generator=torch.Generator().manual_seed(1)).double()

    def potential(w: torch.Tensor, eta: float) -> torch.Tensor:
        s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, w.reshape(3, 3), data.z), -1)
        loss = torch.nn.functional.softplus(-(s * am.scores(data)).sum(-1)).mean()
        return (w.abs() ** p).sum() / p - eta * loss

    check = remark_1(Facts(data, p=p, init=W))
    assert check.outcome == am.theory.Outcome.HOLDS
    eta = float(check.numbers["η"])
    H = torch.autograd.functional.hessian(lambda w: potential(w, eta), W.flatten())
    assert eta > 0
    assert float(torch.linalg.eigvalsh(H).min()) >= 0
    if p > 2.0:  # at an entry that is zero ψ is flat, and no η is proved to be short enough
        flat = remark_1(Facts(data, p=p, init=W * torch.tensor([0.0, 1.0, 1.0]).double()))
        assert flat.outcome == am.theory.Outcome.UNDECIDABLE
        assert float(flat.numbers["η"]) == 0.0


@pytest.mark.parametrize("p", [1.75, 3.0])
def test_lemma_17_along_a_run(p: float) -> None:
    """A run from the thinner cone stays in the wider one; outside nothing is promised."""
    data = am.random_data(2, 3, 4, name="lemma 17", min_gap=0.3)
    own = Facts(data, p=p).chosen
    target = own.solution.W / own.value
    noise = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).double()
    near = (target + 0.8**k * noise for k in range(100))
    W = next(W for W in near if float(am.bregman(target, W, p)) <= float(own.mu_0) / 3.0)
    start = 1.01 * float(own.R_mu) * W / Lp(p).value(W)
    check = lemma_17(Facts(data, p=p, init=start))
    assert check.outcome == am.theory.Outcome.HOLDS
    assert float(check.numbers["R_μ, for step sizes up to 1"]) == float(own.R_mu)
    length = 0.002 * float(own.R_mu) ** (p - 1.0)  # so that 500 steps double ∇ψ(W)
    run = am.train(data, method="mirror", p=p, init=start, lr=length, steps=500, record=50)
    assert float(Lp(p).value(run.W[-1])) > 1.2 * float(Lp(p).value(start))
    assert float(am.bregman(target.expand_as(run.W), run.W, p).max()) <= float(own.mu_0)
    assert lemma_17(Facts(data, p=p, init=0.5 * start)).outcome == am.theory.Outcome.UNDECIDABLE
