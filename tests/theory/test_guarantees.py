"""Theorems A and B: a reached point proves what descent will select."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.attention.losses import LOSSES
from attnmargin.attention.softmax import objective
from attnmargin.theory.guarantees.frame import Obstacle
from attnmargin.theory.guarantees.tube import Tube
from attnmargin.theory.staying import excess_loss, staying_loss
from tests.theory.funnels import Statement

SHAPES = [(3, 3, 3), (5, 5, 5), (4, 6, 8)]


def reached(
    shape: tuple[int, int, int], trials: int, steps: int, **options: object
) -> tuple[am.AttentionData, Tensor]:
    data = am.random_data(*shape, trials=trials, name="guarantees")
    return data, am.train(data, lr=0.1, steps=steps, record=steps, **options).W[-1]  # type: ignore[arg-type]


def two_tokens(a: float) -> tuple[am.AttentionData, list[list[float]]]:
    """One sequence of tokens 1 and 0 with scores 1 and 0; the logits differ by a."""
    return am.AttentionData([[[1.0], [0.0]]], [[1.0]], [1], [1.0]), [[a]]


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear"])
def test_below_the_loss_of_the_other_token_the_best_one_is_certain(loss: str) -> None:
    """Closed form: L₂ is the loss of token 1, so that every W qualifies."""
    for a in (-5.0, -1.0, 0.0, 3.0):
        found = am.theory.guarantee(*two_tokens(a), step=0.0, loss=loss)
        assert bool(found.by_level)
        assert found.selection.tolist() == [0]
        share = 1.0 / (1.0 + math.exp(-a))
        assert float(found.level.share) == pytest.approx(share, rel=1e-9)


def test_the_longest_step_solves_its_equation() -> None:
    data, W = two_tokens(2.0)
    found = am.theory.guarantee(data, W, step=0.0, loss="linear")
    length, wide = float(found.level.longest), 1.0  # B is the distance of the tokens; λ = 0
    left = math.expm1(wide * length) - wide * length
    assert left / length == pytest.approx(1.0 / float(found.solution.value), rel=1e-6)


def test_three_tokens_above_the_level_are_not_decided_by_it() -> None:
    """The second best token has the larger loss, and its own direction is not stable."""
    data = am.AttentionData([[[1.0], [0.5], [-1.0]]], [[1.0]], [1], [1.0])
    for a, certain in ((-1.0, False), (0.0, False), (3.0, True)):
        found = am.theory.guarantee(data, [[a]], step=0.0)
        goal = objective(data, "linear", "logistic")
        excess = excess_loss(goal, goal.flat.logits(torch.tensor([[[a]]], dtype=torch.float64)))
        assert bool(excess < staying_loss(goal, 1.0)) == certain
        assert bool(found.by_level) == certain


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "log"])
def test_rises_of_losses_are_differences(name: str) -> None:
    loss = LOSSES[name]()
    u, drop = torch.meshgrid(
        torch.linspace(-3, 0.9, 7, dtype=torch.float64),
        torch.tensor([0.1, 1.0, 3.0], dtype=torch.float64),
        indexing="ij",
    )
    torch.testing.assert_close(loss.rise(u, drop), loss.value(u - drop) - loss.value(u))
    step = 1e-6
    slope = -loss.log_slope(u).exp()
    bent = (loss.log_slope(u + step) - loss.log_slope(u - step)).abs() / (2 * step)
    assert bool((slope < 0).all())
    assert bool((bent <= loss.bend(u - 1.0, u) * (1 + 1e-5) + 1e-9).all())


def test_the_excess_of_other_selections_is_not_lost() -> None:
    """Far along another selection, where the gradient underflows."""
    data = am.AttentionData([[[1.0], [-1.0]]], [[1.0]], [1], [1.0])
    goal = objective(data, "linear", "logistic")
    logits = goal.flat.logits(torch.tensor([[[-2000.0]]], dtype=torch.float64))
    expected = math.log1p(math.e) - math.log1p(math.exp(-1.0))
    assert float(excess_loss(goal, logits)) == pytest.approx(expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_fifty_digits_agree(shape: tuple[int, int, int]) -> None:
    """A second implementation of the inequality, at the radius that was found."""
    data, W = reached(shape, 6, 3000)
    found = am.theory.guarantee(data, W)
    asked = found.by_funnel.nonzero().flatten().tolist()
    assert asked
    for k in asked[:3]:
        statement = Statement(data[k], W[k].numpy(), found.selection[k].tolist())
        growths = statement.holds(float(found.funnel.tube.radius[k]), 0.1)
        assert growths
        near = min(abs(float(b) - float(found.funnel.tube.growth[k])) for b in growths)
        assert near <= 1e-6 * (1.0 + float(found.funnel.tube.growth[k]))
        assert statement.holds(0.9 * math.sqrt(float(statement.rho2)), 0.1) == []


def offsets(found: am.theory.Guarantee, W: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """``g − g₀`` and ``r − r₀`` of W: ``W = g W_mm + V + r``, with V of the start."""
    W_mm = found.solution.W
    theta2 = 1.0 / (W_mm**2).sum((-2, -1))
    g, g0 = (theta2 * (x * W_mm).sum((-2, -1)) for x in (W, start))
    return g - g0, W - start - (g - g0)[..., None, None] * W_mm


@pytest.mark.parametrize("shape", SHAPES)
def test_certified_runs_stay_in_their_funnels(shape: tuple[int, int, int]) -> None:
    """At the certified step and at the longest one, for ten times the steps."""
    data, W = reached(shape, 40, 1500)
    found = am.theory.guarantee(data, W)
    proved = found.proved
    assert int(proved.sum()) >= 30
    for lr in (torch.full_like(found.longest, 0.1), found.longest):
        run = am.train(data[proved], lr=lr[proved], steps=15000, record=500, init=W[proved])
        assert bool((run.selection == found.selection[proved]).all(-1)[-1].all())
        inside = found.by_funnel[proved]
        kept = (run.selection == found.selection[proved]).all(-1)[:, inside]
        assert bool(kept.all())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_distance_to_the_ray_is_bounded(shape: tuple[int, int, int]) -> None:
    """``‖r‖² ≤ R² + 2b (g − g₀)``; r differs from what is measured by r₀, which is below R."""
    data, W = reached(shape, 40, 1500)
    found = am.theory.guarantee(data, W, step=0.5)
    inside = found.by_funnel
    data, W, own = data[inside], W[inside], am.theory.guarantee(data[inside], W[inside], step=0.5)
    assert len(W) >= 10
    run = am.train(data, lr=0.5, steps=4000, record=20, init=W)
    for k in range(len(run.steps)):
        grown, r = offsets(own, run.W[k], W)
        assert bool((grown >= 0).all())
        tube = own.funnel.tube
        bound = (tube.radius**2 + 2 * tube.growth * grown).sqrt() + tube.radius
        assert bool((r.norm(dim=(-2, -1)) <= bound).all())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_angle_is_bounded_at_every_norm(shape: tuple[int, int, int]) -> None:
    data, W = reached(shape, 40, 1000)
    proved = am.theory.guarantee(data, W, step=0.1).proved
    data, W = data[proved], W[proved]
    own = am.theory.guarantee(data, W, step=0.1)
    run = am.train(data, lr=0.1, steps=20000, record=1000, init=W)
    last = torch.full_like(own.longest, -1.0)
    for k in range(1, len(run.steps)):
        bound = own.correlation(run.W[k].norm(dim=(-2, -1)))
        assert bool((am.correlation(run.W[k], own.solution.W) >= bound).all())
        assert bool((bound >= last - 1e-12).all())
        last = bound
    assert float(last.median()) > 0.9


def test_the_angle_of_a_tube_that_widens() -> None:
    """‖r‖/g may rise first, while ‖V‖/g falls: the bound is never below either."""
    g, V, R, b = 41.1, 3.85, 0.0378, 0.0035
    numbers = (torch.tensor([x], dtype=torch.float64) for x in (g, 0.943, V, R, b))
    tube = Tube(*numbers)
    for later in (g, 1.2 * g, 2.0 * g, 5.0 * g):
        across = V + math.sqrt(R**2 + 2 * b * (later - g))
        norm = torch.tensor([math.hypot(later / 0.943, across)], dtype=torch.float64)
        worst = math.cos(math.atan(0.943 * across / later))
        assert worst - 0.002 <= float(tube.correlation(norm)) <= worst + 1e-12


def test_a_word_that_occurs_twice_is_one_token() -> None:
    """Copies add log c to the logit; the funnel around the others has the same direction."""
    data, W = reached((5, 5, 5), 20, 3000)
    assert data.mask is None
    plain = am.theory.guarantee(data, W)
    first = plain.selection[..., None, None].expand(-1, -1, 1, data.d)
    for again in (data.X[..., :1, :], data.X.gather(-2, first)):
        twice = am.AttentionData(torch.cat((data.X, again), -2), data.z, data.y, data.v)
        run = am.train(twice, steps=3000, record=3000, lr=0.1)
        found = am.theory.guarantee(twice, run.W[-1])
        assert int(found.proved.sum()) >= 17
        later = am.train(twice, steps=30000, record=30000, lr=0.1, init=run.W[-1])
        share = am.probabilities(twice, later.W[-1])
        same = (twice.X.unsqueeze(-2) == twice.X.unsqueeze(-3)).all(-1)
        own = found.selection[..., None, None].expand(*found.selection.shape, 1, data.T + 1)
        share = (share * same.gather(-2, own)[..., 0, :]).sum(-1).amin(-1)
        assert bool((share >= found.share)[found.proved].all())
        assert bool((share > 0.99)[found.proved].all())


def test_a_multiplier_that_is_dropped_is_noticed() -> None:
    """A funnel without the row would be certified, and training leaves it."""
    beta = 2e6
    X = [[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]], [[0.0, beta], [0.0, 0.0], [-3.0, 2.99 * beta]]]
    data = am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1], [1.0, 2.0 / beta])
    W = [[4800.0, 0.0], [2200.0 / beta, 0.0]]
    found = am.theory.guarantee(data, W, [0, 0], step=2e-8)
    assert not bool(found.proved)


def test_gradients_beyond_floats_cover_no_plain_rate() -> None:
    """Far out, the bound of the gradient is a logarithm; no rate is understated."""
    data = am.AttentionData(
        [[[1.0, 1.0], [0.0, 0.0]], [[1.0, -1.0], [0.0, 0.0]]], [[1.0, 0.0]] * 2, [1, 1], [1.0, 0.0]
    )
    W = [[600.0, 0.0], [350.0, 0.0]]
    found = am.theory.guarantee(data, W, [0, 0], step=0.1)
    assert bool(found.by_funnel)
    gradient, log_scale = am.gradient(data, W)
    assert float(found.funnel.log_gradient) >= float(gradient.norm().log() + log_scale)
    assert float(found.rate) == pytest.approx(0.1 * math.exp(-float(found.funnel.log_gradient)))


def test_support_rows_that_nearly_depend_are_refused() -> None:
    """λ and ρ₀ would be rounding: the condition of the two rows is 1e12."""
    X = [[[1.0, 1e-6], [0.0, 0.0]], [[1.0, -1e-6], [0.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1], [1.0, 0.0])
    found = am.theory.guarantee(data, [[30.0, 0.0], [0.0, 0.0]], [0, 0])
    assert not bool(found.by_funnel)
    assert int(found.obstacle) == Obstacle.DEPENDENT
    assert bool(found.by_level)


def test_obstacles_are_named() -> None:
    data = am.random_data(3, 4, 2, trials=30, name="obstacles")
    worst = am.scores(data).argmin(-1)
    found = am.theory.guarantee(data, [[0.0, 0.0], [0.0, 0.0]], worst)
    assert not bool(found.by_funnel.any())
    names = {Obstacle(int(k)) for k in found.obstacle}
    assert names <= {Obstacle.NO_DIRECTION, Obstacle.SUPPORT, Obstacle.LEVEL, Obstacle.DOUBTFUL}
    assert Obstacle.SUPPORT in names


def test_scales_do_not_matter() -> None:
    data, W = reached((4, 4, 4), 8, 2000)
    found = am.theory.guarantee(data, W)
    assert data.v is not None
    big = am.AttentionData(1e3 * data.X, data.z, data.y, 1e-3 * data.v)
    again = am.theory.guarantee(big, 1e-3 * W, step=1e-4)
    assert torch.equal(found.proved, again.proved)
    torch.testing.assert_close(found.longest, 1e3 * again.longest, rtol=1e-6, atol=1e-9)


def test_a_batch_equals_its_loop() -> None:
    data, W = reached((4, 5, 4), 4, 1500)
    batch = am.theory.guarantee(data, W)
    for k in range(4):
        alone = am.theory.guarantee(data[k], W[k])
        assert torch.equal(alone.proved, batch.proved[k])
        torch.testing.assert_close(alone.longest, batch.longest[k], rtol=1e-9, atol=0)
        torch.testing.assert_close(alone.share, batch.share[k], rtol=1e-9, atol=0)


def test_masks_and_several_queries_are_covered() -> None:
    rng = np.random.default_rng(5)
    X, z = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 2, 6))
    mask = np.ones((3, 4), dtype=bool)
    mask[0, 3] = mask[2, 2] = False
    v, y = rng.standard_normal(6), np.array([[1, -1], [1, 1], [-1, 1]])
    data = am.AttentionData(X, z, y, v, mask)
    run = am.train(data, lr=0.1, steps=5000, record=5000)
    found = am.theory.guarantee(data, run.W[-1])
    assert bool(found.proved)
    longer = am.train(data, lr=0.1, steps=20000, record=20000, init=run.W[-1])
    assert torch.equal(longer.selection[-1], found.selection)


def test_float32_runs_are_judged_in_float64() -> None:
    data, W = reached((4, 4, 4), 5, 2000)
    found = am.theory.guarantee(data, W)
    assert data.y is not None
    assert data.v is not None
    parts = [x.float() for x in (data.X, data.z, data.y, data.v)]
    again = am.theory.guarantee(am.AttentionData(*parts), W.float())
    assert again.longest.dtype == torch.float64
    assert torch.equal(found.proved, again.proved)


def test_one_visible_token_is_no_question() -> None:
    data = am.AttentionData([[[1.0]]], [[1.0]], [1], [1.0])
    found = am.theory.guarantee(data, [[0.0]])
    assert bool(found.proved)
    assert float(found.share) == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"W": [[1.0, 2.0]]}, r"W: got shape \(1, 2\); needs \(3, 3\)"),
        ({"step": -1.0}, "step: got -1; needs a length of at least 0"),
        ({"step": "far"}, "step: got 'far'"),
        ({"selection": [0, 9, 0]}, "selection"),
        ({"loss": "hinge"}, "loss: got 'hinge'"),
    ],
)
def test_bad_arguments(options: dict[str, object], words: str) -> None:
    data = am.random_data(3, 3, 3, name="bad")
    given: dict[str, object] = {"W": torch.zeros(3, 3, dtype=torch.float64), **options}
    with pytest.raises(am.InputError, match=words):
        am.theory.guarantee(data, **given)  # type: ignore[arg-type]


def test_data_without_a_head_have_no_scores() -> None:
    data = am.AttentionData([[[1.0], [0.0]]], [[1.0]])
    with pytest.raises(am.InputError, match="data: got no head v; needs a linear head"):
        am.theory.guarantee(data, [[1.0]])
