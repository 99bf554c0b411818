"""Theorem C: inside a cone around an ℓp direction, mirror descent never leaves it."""

import math
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import inverse_mirror, mirror, scaled_norm
from attnmargin.theory.guarantees.cone import _longest
from attnmargin.theory.guarantees.spread import build_spread, curvature

POWERS = [1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 6.0, 10.0]


def unit(W: Tensor, p: float) -> Tensor:
    return W / scaled_norm(W.flatten(-2), p)[..., None, None]


def divergence(v: Tensor, u: Tensor, p: float) -> Tensor:
    return 1.0 - (mirror(unit(u, p), p) * unit(v, p)).sum((-2, -1))


@pytest.mark.parametrize("p", POWERS)
def test_rows_move_no_further_than_the_bound(p: float) -> None:
    """Directions near v, random and pulled against each row, with sparse v as well."""
    data = am.random_data(3, 4, 4, trials=60, name="spread")
    generator = torch.Generator().manual_seed(3)
    v = torch.randn(60, 4, 4, generator=generator, dtype=torch.float64)
    v = unit(
        v
        * (torch.rand(v.shape, generator=generator) > 0.3 * (torch.arange(60) % 2)[:, None, None]),
        p,
    )
    problem = token_problem(data.X, data.z, am.optimal_tokens(data))
    spread, tight = build_spread(problem, v, p), 0.0
    A = problem.left.unsqueeze(-1) * problem.right.unsqueeze(-2)
    for k in range(A.shape[1]):
        for size in (1e-4, 1e-2, 0.3, 2.0):
            noise = torch.randn(v.shape, generator=generator, dtype=torch.float64)
            for pull in (A[:, k], -A[:, k], mirror(A[:, k], p / (p - 1.0)), noise):
                u = unit(v + size * pull, p)
                moved = (problem.apply(u - v)).abs()
                bound = spread.bound(divergence(v, u, p).clamp_min(0.0).unsqueeze(-1) + 1e-15)
                assert bool((moved <= bound + 1e-12).all())
                tight = max(tight, float((moved / bound)[:, k].max()))
    assert tight > (0.9 if p == 2.0 else 0.3)


@pytest.mark.parametrize("p", [2.1, 3.0, 4.5, 10.0])
def test_the_curvature_is_the_least(p: float) -> None:
    b = torch.linspace(-50.0, 50.0, 200_000, dtype=torch.float64)
    divergence = (1.0 - b.abs() ** p) / p - mirror(b, p) * (1.0 - b)
    ratio = divergence / (1.0 - b) ** 2
    assert curvature(p) <= float(ratio.min())
    assert curvature(p) == pytest.approx(float(ratio.min()), rel=1e-4)


@pytest.mark.parametrize("p", POWERS)
def test_steps_of_the_longest_length_are_short(p: float) -> None:
    """The primal length of mirror steps, from anywhere of norm N₀ or more, over N₀."""
    generator = torch.Generator().manual_seed(5)
    W = torch.randn(400, 3, 3, generator=generator, dtype=torch.float64)
    W = W * (torch.rand(W.shape, generator=generator) > 0.4)
    size = 10.0 ** torch.linspace(-1.0, 2.0, 400, dtype=torch.float64)
    W = unit(W, p) * size[:, None, None]
    room = 0.3 * size
    step = torch.randn(W.shape, generator=generator, dtype=torch.float64)
    step = step * (torch.rand(W.shape, generator=generator) > 0.4)
    step = unit(step, p / (p - 1.0)) * _longest(room, size, p)[:, None, None]
    moved = scaled_norm((inverse_mirror(mirror(W, p) + step, p) - W).flatten(1), p)
    assert bool((moved <= room).all())
    assert float((moved / room).max()) > 0.3


def reached(p: float, trials: int, name: str) -> tuple[am.AttentionData, Tensor]:
    """Points that runs reach, or for p > 2, where steps lead too slowly, points near directions."""
    data = am.random_data(4, 5, 6, trials=trials, name=name)
    if p < 2.0:
        return data, am.train(data, "W", "mirror", p=p, lr=0.1, steps=4000, record=4000).W[-1]
    run = am.train(data, "W", "mirror", p=p, lr=0.1, steps=1000, record=1000)
    solution = am.solve(token_problem(data.X, data.z, run.selection[-1]), p)
    noise = 0.01 * am.random_data(4, 5, 6, trials=trials, name=name + " noise").X.mean(-3)
    direction = solution.W.nan_to_num(0.0)
    return data, unit(direction + noise.mean((-2, -1), keepdim=True) * direction.sign(), p) * 3e4


@pytest.mark.parametrize("p", [1.5, 1.75, 2.5, 3.0])
def test_certified_runs_stay_in_their_cones(p: float) -> None:
    """At the certified step and at the longest one; the divergence ends below its bound."""
    data, W = reached(p, 40, "cone")
    found = am.theory.guarantee(data, W, p=p)
    sure = found.by_cone
    assert int(sure.sum()) >= 20
    data, W, own = data[sure], W[sure], am.theory.guarantee(data[sure], W[sure], p=p)
    begun = divergence(own.solution.W, W, p)
    assert bool((begun <= own.divergence).all())
    for lr in (torch.full_like(own.longest, 0.1), own.longest):
        run = am.train(data, "W", "mirror", p=p, lr=lr, steps=20_000, record=500, init=W)
        assert bool((run.selection == own.selection).all())
        for k in range(len(run.steps)):
            assert bool((divergence(own.solution.W, run.W[k], p) <= own.divergence).all())
            size = scaled_norm(run.W[k].flatten(1), p)
            assert bool((size >= 0.9 * scaled_norm(W.flatten(1), p)).all())
    assert float(divergence(own.solution.W, run.W[-1], p).max()) < 0.1 * float(own.divergence.min())


@pytest.mark.parametrize("p", [1.5, 1.75, 3.0])
def test_points_pushed_towards_higher_tokens(p: float) -> None:
    """As far as the certificate goes: none is left."""
    data, W = reached(p, 60, "pushed")
    sure = am.theory.guarantee(data, W, p=p, step=0.0).by_cone
    data, W = data[sure], W[sure]
    first = am.theory.guarantee(data, W, p=p, step=0.0)
    scores = am.scores(data)
    low = scores < scores.gather(-1, first.selection.unsqueeze(-1))
    assert int((~low).sum()) >= low.shape[0] * low.shape[1] + 3  # some higher tokens
    problem = first.solution.problem
    rivals = low.gather(-1, problem.names.other.reshape(*low.shape[:2], -1)).flatten(1)
    worst = (problem.apply(first.solution.W) + 1e9 * rivals).argsort(-1)
    size = scaled_norm(W.flatten(1), p)[:, None, None]
    best = W.clone()
    for k in range(3):
        row = torch.nn.functional.one_hot(worst[:, k], problem.left.shape[-2]).to(W)
        pull = unit(mirror(problem.adjoint(row), p / (p - 1.0)), p) * size
        for share in (0.003, 0.01, 0.03, 0.1):
            pushed = unit(best - share * pull, p) * size
            good = am.theory.guarantee(data, pushed, first.selection, p=p, step=0.0).by_cone
            best = pushed.where(good[:, None, None], best)
    own = am.theory.guarantee(data, best, first.selection, p=p, step=0.0)
    assert bool(own.by_cone.all())
    assert float(divergence(own.solution.W, best, p).max()) > 1e-4
    run = am.train(data, "W", "mirror", p=p, lr=own.longest, steps=5000, record=50, init=best)
    assert bool((run.selection == own.selection).all())
    for k in range(len(run.steps)):
        assert bool((divergence(own.solution.W, run.W[k], p) <= own.divergence).all())


def inequality(data: am.AttentionData, W: Tensor, found: Any, p: float, step: float) -> bool:
    """Theorem C with 40 digits and explicit matrices, at the divergence that was found, p < 2."""
    mpmath.mp.dps = 40
    assert data.y is not None
    assert data.v is not None
    d, n, T = data.d, data.n, data.T
    number = lambda x: mpmath.mpf(float(x))  # noqa: E731
    spots = [(a, b) for a in range(d) for b in range(d)]
    q = p / mpmath.mpf(p - 1)
    norm = lambda M, r: mpmath.fsum(abs(M[s]) ** r for s in spots) ** (1 / mpmath.mpf(r))  # noqa: E731
    inner = lambda M, R: mpmath.fsum(M[s] * R[s] for s in spots)  # noqa: E731
    chosen = found.selection.tolist()
    gamma = [
        [
            number(data.y[i])
            * mpmath.fsum(number(data.v[a]) * number(data.X[i, t, a]) for a in range(d))
            for t in range(T)
        ]
        for i in range(n)
    ]
    rows = [(i, t) for i in range(n) for t in range(T) if t != chosen[i]]
    A = {
        (i, t): {
            (a, b): (number(data.X[i, chosen[i], a]) - number(data.X[i, t, a]))
            * number(data.z[i, b])
            for a, b in spots
        }
        for i, t in rows
    }
    gap = {(i, t): gamma[i][chosen[i]] - gamma[i][t] for i, t in rows}
    V = {s: number(found.solution.W[s]) for s in spots}
    least = min(inner(A[j], V) for j in rows)
    V = {s: V[s] / least for s in spots}
    theta = 1 / norm(V, p)
    v = {s: V[s] * theta for s in spots}
    N = norm({s: number(W[s]) for s in spots}, p)
    u = {s: number(W[s]) / N for s in spots}
    rho = mpmath.fsum(mpmath.sign(u[s]) * abs(u[s]) ** (p - 1) * v[s] for s in spots)
    eps = number(found.divergence)
    assert 1 - rho <= eps
    N0 = N * rho ** (1 / mpmath.mpf(p - 1))
    dual = [max(float(x), 0.0) for x in found.solution.dual]
    kept = [x if x > 1e-6 * max(dual) else 0.0 for x in dual]
    w = {j: number(x) / mpmath.fsum(map(number, kept)) for j, x in zip(rows, kept, strict=True)}
    above = norm({s: mpmath.fsum(w[j] * A[j][s] for j in rows) for s in spots}, q)
    f = mpmath.sqrt(2 * eps / (p - 1))
    tau, length = {}, {j: norm(A[j], q) for j in rows}
    for j in rows:
        close = mpmath.fsum(A[j][s] ** 2 * abs(v[s]) ** (2 - p) for s in spots)
        away = f * min(length[j], mpmath.sqrt(close + length[j] ** 2 * f ** (2 - p)))
        tau[j] = theta * inner(A[j], V) - away
    odds = {j: mpmath.exp(-N0 * tau[j]) for j in rows}
    Q = [mpmath.fsum(odds[j] for j in rows if j[0] == i) for i in range(n)]
    D = [mpmath.fsum(odds[j] * abs(gap[j]) for j in rows if j[0] == i) for i in range(n)]
    low = [j for j in rows if gap[j] > D[j[0]]]
    high = [j for j in rows if j not in low]
    slope = [1 / (1 + mpmath.exp(gamma[i][chosen[i]])) for i in range(n)]
    bend = [1 / (1 + mpmath.exp(-max(gamma[i]))) for i in range(n)]
    most = {
        j: slope[j[0]] * mpmath.exp(bend[j[0]] * D[j[0]]) * (abs(gap[j]) + D[j[0]]) for j in rows
    }
    floor = {
        j: slope[j[0]] * mpmath.exp(-bend[j[0]] * D[j[0]]) * (gap[j] - D[j[0]]) / (1 + Q[j[0]])
        for j in low
    }
    held = [j for j in rows if w[j] > 0]
    assert all(j in low for j in held)
    centre = mpmath.exp(mpmath.fsum(w[j] * mpmath.log(floor[j] / w[j]) for j in held))
    force = {j: most[j] / centre * mpmath.exp(-N0 * (tau[j] - above)) for j in rows}
    lead = {j: N0 * (tau[j] - above) for j in rows}
    far = high + [
        j
        for j in low
        if w[j] == 0 and lead[j] > 1 and N0 * tau[j] * mpmath.exp(-lead[j]) < mpmath.mpf("0.01")
    ]
    K = mpmath.log(mpmath.fsum(most[j] for j in low if j not in far) / centre)
    K += mpmath.fsum(force[j] * N0 * tau[j] for j in far)
    P = mpmath.fsum(force[j] * inner(A[j], V) for j in high)
    size = max(length[j] for j in low) + mpmath.fsum(force[j] * length[j] for j in high)
    Y = N0 ** (p - 1)
    primal = step * (Y + step) ** ((2 - p) / mpmath.mpf(p - 1)) / (p - 1)
    good = all(tau[j] > 0 for j in rows) and all(lead[j] >= 1 for j in high) and above * N0 >= 1
    return bool(good and theta * (1 - P) > (1 - eps) * (above + (K + primal * size) / N0))


@pytest.mark.parametrize("p", [1.5, 1.75])
def test_forty_digits_agree(p: float) -> None:
    data = am.random_data(3, 4, 4, trials=12, name="digits")
    W = am.train(data, "W", "mirror", p=p, lr=0.1, steps=4000, record=4000).W[-1]
    found = am.theory.guarantee(data, W, p=p)
    asked = found.by_cone.nonzero().flatten().tolist()
    assert len(asked) >= 6
    for k in asked[:4]:
        own = am.theory.guarantee(data[k], W[k], p=p)
        longest = float(own.longest)
        assert inequality(data[k], W[k], own, p, longest)
        assert not inequality(data[k], W[k], own, p, 1.02 * longest)


def test_repeated_tokens_weigh_more() -> None:
    """A rival that occurs three times delays the proof, and changes nothing else."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 0.5]], [1], [1.0, 0.0])
    thrice = am.AttentionData(
        [[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]], [[1.0, 0.5]], [1], [1.0, 0.0]
    )
    W = am.train(data, "W", "mirror", p=1.5, lr=0.1, steps=500, record=500).W[-1]
    one, three = (am.theory.guarantee(x, W, p=1.5) for x in (data, thrice))
    assert bool(one.by_cone)
    assert bool(three.by_cone)
    lost = [1.0 / float(x.share) - 1.0 for x in (one, three)]
    assert lost[1] == pytest.approx(3.0 * lost[0], rel=1e-6) or max(lost) < 1e-12


def test_batch_equals_loop() -> None:
    data, W = reached(1.75, 8, "loop")
    found = am.theory.guarantee(data, W, p=1.75)
    for k in range(8):
        own = am.theory.guarantee(data[k], W[k], p=1.75)
        assert bool(own.by_cone) == bool(found.by_cone[k])
        assert float(own.longest) == pytest.approx(float(found.longest[k]), rel=1e-9)


def test_predictions_of_mirror_descent_are_proved() -> None:
    """Most of them; what a run of ten times the steps selects is what was proved."""
    data = am.random_data(5, 5, 20, trials=20, name="proved")
    prediction = am.predict(data, p=1.75, steps=4000)
    sure = torch.as_tensor(prediction.verdict == am.Verdict.FROM_START)
    assert int(sure.sum()) >= 18
    run = am.train(data, "W", "mirror", p=1.75, lr=0.1, steps=40_000, record=40_000)
    assert bool((run.selection[-1] == prediction.selection)[sure].all())
    assert bool((prediction.longest[sure] >= 0.1).all())
    one = prediction[int(sure.nonzero()[0])].explain()
    assert "in a cone around their direction, which they never leave (Theorem C)" in one


def test_far_from_any_direction_nothing_is_proved() -> None:
    data = am.random_data(4, 5, 6, name="cone")
    for W in (torch.zeros(6, 6), 1e4 * torch.eye(6)):
        found = am.theory.guarantee(data, W.double(), p=1.75)
        assert not bool(found.proved)
        assert float(found.longest) == 0.0
        assert math.isclose(float(found.divergence), 1.0)


def test_powers_out_of_range_are_refused() -> None:
    data = am.random_data(4, 5, 6, name="cone")
    with pytest.raises(am.InputError, match=r"p: got 1\.01; needs a power from 1\.1 to 10"):
        am.theory.guarantee(data, torch.zeros(6, 6).double(), p=1.01)
