"""Facts that the checks share."""

import math

import torch

import attnmargin as am
from attnmargin.theory.facts import Facts
from tests.instances import contradiction, identity_data


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
