"""Local theorems for any selection and any start, against brute force and autograd."""

from itertools import product

import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.theory.chosen import Chosen
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a_local import theorem_7
from attnmargin.theory.paper_b import theorem_2_b, theorem_3, theorem_4
from tests.formulas import brute_force

HOLDS, FAILS = am.theory.Outcome.HOLDS, am.theory.Outcome.FAILS
OPEN = am.theory.Outcome.UNDECIDABLE
LOCAL = (theorem_7, theorem_2_b, theorem_3, theorem_4)


def narrow() -> am.AttentionData:
    """No W separates the best tokens, but other selections are locally optimal."""
    data = am.random_data(3, 3, 2, trials=40, name="narrow")
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
    return data[int(solution.infeasible.nonzero()[0])]


def many(data: am.AttentionData, count: int) -> am.AttentionData:
    assert data.y is not None
    assert data.v is not None
    parts = (x.expand(count, *x.shape) for x in (data.X, data.z, data.y, data.v))
    return am.AttentionData(*parts)


def loss(data: am.AttentionData, W: Tensor) -> Tensor:
    """The loss written out, for autograd."""
    s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.z), -1)
    return torch.nn.functional.softplus(-(s * am.scores(data)).sum(-1)).mean()


def gradient(data: am.AttentionData, W: Tensor) -> Tensor:
    W = W.clone().requires_grad_()
    return torch.autograd.grad(loss(data, W), W)[0]


def test_theorems_hold_for_exactly_the_locally_optimal_selections() -> None:
    data = narrow()
    selections = list(product(range(3), repeat=3))
    expected = [brute_force(data, s) for s in selections]
    assert 0 < sum(expected) < len(selections)
    facts = Facts(many(data, len(selections)), selection=torch.tensor(selections))
    for theorem in LOCAL:
        assert (theorem(facts).outcome == HOLDS).tolist() == expected
        assert (theorem(facts).outcome == FAILS).tolist() == [not x for x in expected]


def test_by_default_inseparable_best_tokens_leave_the_other_selections() -> None:
    data = narrow()
    checks = {check.label: check for check in am.theory.check_theory(data)}
    assert checks["A: (Att-SVM) is feasible"].outcome == FAILS
    for name in ("A: Theorem 7", "A: Theorem 9", "B: Theorem 2", "B: Theorem 3", "B: Theorem 4"):
        assert checks[name].outcome == HOLDS, name
    count = sum(brute_force(data, s) for s in product(range(3), repeat=3))
    assert float(checks["A: Theorem 7"].numbers["locally optimal selections found"]) == count
    chosen = Facts(data).chosen
    assert brute_force(data, tuple(chosen.selection.tolist()))
    gamma = am.scores(data)
    own = gamma.gather(-1, chosen.selection.unsqueeze(-1))
    least = (own - gamma).where(gamma < own, torch.inf).min()
    c = checks["A: Assumption E"].numbers["c, distance to the next lower score"]
    torch.testing.assert_close(c, least)


def test_a_start_in_the_cone_and_starts_outside() -> None:
    data = narrow()
    found = am.selections.local_selections(data)
    for k in range(len(found.selections)):
        W = found.solution.W[k] / found.solution.W[k].norm()
        facts = Facts(data, selection=found.selections[k])
        R, mu = float(facts.chosen.radius_a), float(facts.chosen.mu)
        turned = torch.randn(2, 2, generator=torch.Generator().manual_seed(k)).double()
        turned -= (turned * W).sum() * W
        for share, size, outcome in ((0.9, 1.01, HOLDS), (1.1, 1.01, OPEN), (0.9, 0.99, OPEN)):
            cosine = 1.0 - share * mu
            sine = (1.0 - cosine**2) ** 0.5
            start = size * R * (cosine * W + sine * turned / turned.norm())
            check = theorem_7(Facts(data, selection=found.selections[k], init=start))
            assert check.outcome == outcome, (k, share, size)
            assert float(check.numbers["W(0) is in the cone (1: yes)"]) == (outcome == HOLDS)
            if outcome == HOLDS:  # without a selection, the cone that W(0) is in decides
                assert torch.equal(Facts(data, init=start).chosen.selection, found.selections[k])
        for start in (0.0 * W, -R * W):
            check = theorem_7(Facts(data, selection=found.selections[k], init=start))
            assert check.outcome == FAILS


@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_mirror_descent_from_the_thinner_cone(p: float) -> None:
    data = narrow()
    found = am.selections.local_selections(data, p)
    chosen = Facts(data, p=p, selection=found.selections[0]).chosen
    W = found.solution.W[0] / am.solve(chosen.solution.problem, p).value
    far = 1.01 * float(chosen.radius_b)
    for start, outcome in ((far * W, HOLDS), (0.9 * far * W, OPEN), (0.0 * W, FAILS)):
        facts = Facts(data, p=p, selection=found.selections[0], init=start)
        assert {str(theorem(facts).outcome) for theorem in LOCAL[1:]} == {str(outcome)}


def in_cone(chosen: Chosen, p: float, radius: float, seed: int) -> Tensor:
    """Draw W of ℓp norm one in the cone of Definition 5."""
    W = chosen.solution.W / chosen.value
    noise = torch.randn(W.shape, generator=torch.Generator().manual_seed(seed)).double()
    for k in range(60):
        drawn = W + 0.7**k * noise
        if float(am.bregman(W, drawn, p)) <= radius:
            return drawn / (drawn.abs() ** p).sum() ** (1.0 / p)
    raise AssertionError


@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_every_direction_of_the_cone_descends_beyond_r_delta(p: float) -> None:
    """Paper B, Lemma 10, by autograd; and Lemma 11 for π = 1/2."""
    data = am.random_data(2, 3, 4, name="lemma 10", min_gap=0.3)
    chosen = Facts(data, p=p).chosen
    radius, pi = float(chosen.mu_0), torch.tensor(0.5, dtype=torch.float64)
    target = chosen.solution.W / chosen.value
    for seed in range(10):
        W, V = (in_cone(chosen, p, radius, s) for s in (seed, 100 + seed))
        G = gradient(data, float(chosen.R_delta) * W)
        assert float((G * V).sum()) < 0
        G = gradient(data, max(float(chosen.R_pi(pi)), float(chosen.R_delta)) * W)
        assert float((G * W).sum()) >= 1.5 * float((G * target).sum())


def test_r_epsilon_of_theorem_7() -> None:
    """Beyond it ⟨−∇L, W_mm⟩ has the share 1 − ε, for several sequences together: (79)."""
    data = am.random_data(3, 3, 5, name="epsilon", trials=5, min_gap=0.2)
    chosen = Facts(data).chosen
    D = chosen.solution.W / chosen.value[:, None, None]
    for seed in range(20):
        noise = torch.randn(D.shape, generator=torch.Generator().manual_seed(seed)).double()
        noise /= noise.flatten(1).norm(dim=-1)[:, None, None]
        W = D + 0.9 * (2.0 * chosen.mu).sqrt()[:, None, None] * noise
        W /= W.flatten(1).norm(dim=-1)[:, None, None]
        assert bool((am.correlation(W, D) >= 1.0 - chosen.mu).all())
        G, _ = am.gradient(data, W * chosen.radius_a[:, None, None])
        own, all_of_it = -(G * D).sum((-2, -1)), -(G * W).sum((-2, -1))
        assert bool((own >= (1.0 - 0.25 * chosen.mu) * all_of_it).all())
        assert bool((own > 0).all())


def test_zeta_by_autograd() -> None:
    data = am.random_data(2, 3, 4, name="zeta")
    chosen = Facts(data).chosen
    W = 5.0 * chosen.solution.W / chosen.value
    G, mu = gradient(data, W), chosen.mu
    rho = -(G * chosen.solution.W).sum() / chosen.value / (1.0 - mu / 4.0)
    expected = (mu - mu / 4.0) / (1.0 - mu) * rho / G.square().sum()
    numbers = theorem_7(Facts(data, init=W)).numbers
    torch.testing.assert_close(numbers["ζ(μ), steps that stay in the cone"], expected)


def test_beyond_r_0_no_weights_of_the_cone_reach_the_loss_of_the_selection() -> None:
    """Paper A, Theorem 10, step 1, at random members of the cone of Definition 3."""
    data = narrow()
    chosen = Facts(data).chosen
    epsilon, R = float(chosen.barrier), float(chosen.R_0)
    best = torch.nn.functional.softplus(-chosen.own).mean()
    generator, inside = torch.Generator().manual_seed(0), 0
    for _ in range(400):
        W = torch.randn(2, 2, generator=generator).double()
        W = R * W / W.norm()
        if float(am.selections.score_barrier(data, W, chosen.selection)) >= epsilon:
            inside += 1
            assert bool(chosen.in_local_cone(1.0001 * W))
            assert float(loss(data, W)) > float(best)
    assert inside > 10
    assert R > 0


@pytest.mark.parametrize("how", [{}, {"p": 3.0}, {"parameter": "KQ"}])
def test_batch_equals_loop(how: dict[str, object]) -> None:
    data = am.random_data(3, 3, 2, trials=3, name="narrow")
    generator = torch.Generator().manual_seed(0)
    given = {"selection": torch.randint(3, (3, 3), generator=generator),
             "init": 50.0 * torch.randn(3, 2, 2, generator=generator).double()}  # fmt: skip
    for names in (("selection", "init"), ("init",)):
        own = {name: given[name] for name in names}
        together = am.theory.check_theory(data, **how, **own)  # type: ignore[arg-type]
        for k in range(3):
            single = {name: x[k] for name, x in own.items()}
            alone = am.theory.check_theory(data[k], **how, **single)  # type: ignore[arg-type]
            for several, one in zip(together, alone, strict=True):
                assert several[k].outcome == one.outcome, one.label
                for name, number in one.numbers.items():
                    torch.testing.assert_close(
                        several[k].numbers[name], number, equal_nan=True, rtol=1e-5, atol=1e-9
                    )


def test_a_start_of_the_wrong_shape_is_refused() -> None:
    data = am.random_data(2, 3, 4, name="zeta")
    with pytest.raises(am.InputError, match=r"init: got shape \(3, 3\); needs \(4, 4\)"):
        am.theory.check_theory(data, init=torch.zeros(3, 3).double())
    with pytest.raises(am.InputError, match=r"selection: got shape \(3,\); needs one token"):
        am.theory.check_theory(data, selection=[0, 0, 0])
    K = torch.zeros(4, 2).double()
    with pytest.raises(am.InputError, match="width: got 3; needs 2, the columns of the K of init"):
        am.theory.check_theory(data, "KQ", init=(K, K), width=3)
