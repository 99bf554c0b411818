"""Where training ends: what the theorems promise."""

import torch

import attnmargin as am


def test_theorem_3_and_lemma_2() -> None:
    """Equal scores of the others (B.2): ‖W‖ grows, the gradient vanishes, the loss stays above."""
    data = am.random_data(4, 4, 6, trials=10, name="B.2")
    gamma = am.scores(data)
    opt = am.optimal_tokens(data).unsqueeze(-1)
    low = gamma.amin(-1, keepdim=True).expand_as(gamma)
    wanted = low.scatter(-1, opt, gamma.amax(-1, keepdim=True))
    shift = (data.y.unsqueeze(-1) * (wanted - gamma)).unsqueeze(-1) * data.v[:, None, None]
    data = am.AttentionData(data.X + shift, data.z, data.y, data.v)
    torch.testing.assert_close(am.scores(data), wanted)
    run = am.train(data, lr="auto", normalize=False, steps=20_000, record=5000)
    norm = run.W.flatten(-2).norm(dim=-1)
    assert bool((norm.diff(dim=0) > 0).all())
    assert bool((run.log_gradient.diff(dim=0) < 0).all())
    infimum = torch.nn.functional.softplus(-am.scores(data).amax(-1)).mean(-1)
    assert bool((run.loss > infimum).all())
    far = am.train(data, steps=3000, record=3000)
    assert bool((am.measures.token_probability(data, far.W[-1]) > 1 - 1e-9).all())


def fig7() -> am.AttentionData:
    """The setting of paper A, figure 7, with the score gap of its other figures."""
    return am.random_data(6, 8, 10, trials=100, name="A:fig7", min_gap=0.1)


def test_every_trial_meets_the_svm_of_what_it_selects() -> None:
    data = fig7()
    run = am.train(data, steps=20_000, record=20_000)
    solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1])).raise_for_status()
    assert float(am.correlation(run.W[-1], solution.W).min()) >= 0.9999


def test_factors_meet_the_nuclear_svm_with_a_vanishing_penalty() -> None:
    """Plain descent is slower; the penalty of the papers' code stops at a finite norm."""
    data, aligned = fig7(), {}
    for penalty in (0.0, 1e-60):
        run = am.train(data, "KQ", steps=5000, record=5000, penalty=penalty)
        solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1]), "nuc")
        aligned[penalty] = am.correlation(run.W[-1], solution.raise_for_status().W)
    assert float(aligned[1e-60].mean()) >= 0.999
    assert 0.97 < float(aligned[0.0].mean()) < float(aligned[1e-60].mean())
