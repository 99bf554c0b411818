"""Which queries are asked, and soft margins: closed forms, planted answers, second computations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

import attnmargin as am
from attnmargin.models import Choices, Head, Settings, fit_choices, selections, study_heads
from attnmargin.models import hands as hands_module
from attnmargin.models.fit import choice_problem, priced, square
from attnmargin.models.hands import hands, largest
from attnmargin.models.hinge import soft_margin
from attnmargin.models.queries import widest
from attnmargin.report.heads import heads_record

m, d, n, T = 3, 6, 4, 7


def random_head(name: str, factor: float = 1.0, **options: Any) -> Head:
    draw = torch.Generator().manual_seed(sum(map(ord, name)))
    shapes = ((m, d), (m, d), (n, T, d))
    W_Q, W_K, X = (torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes)
    return Head(factor * W_Q, W_K, X, **options)


def tied() -> Head:
    """The two tokens with the largest logit are equal, so that no W selects one of them."""
    words = [["a", "a", "film"]]
    return Head([[2.0, 0.0]], [[2.0, 0.0]], [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], words=words)


def random_choices(head: Head, count: int) -> Choices:
    """Tokens at random, which no W realises together."""
    draw = torch.Generator().manual_seed(5)
    text, position = torch.arange(count) % n, torch.arange(count) // n
    return Choices(text, position, torch.randint(T, (count,), generator=draw))


def test_one_query_has_a_closed_form() -> None:
    """The best scale is ``2Cr / (L² + 2Cr²)``, and the slack ``L² / (L² + 2Cr²)``."""
    r, length, price = 3.0, 2.0, 0.7
    scale = 2 * price * r / (length**2 + 2 * price * r * r)
    value = scale**2 * length**2 + 2 * price * (1 - scale * r) ** 2
    found = soft_margin(torch.tensor([r], dtype=torch.float64), length, price)
    assert found == pytest.approx(value**-0.5, rel=1e-12)
    nothing = soft_margin(torch.tensor([-1.0, -2.0]), 1.0, price)  # the best scale is zero
    assert nothing == pytest.approx((2 * price * 2) ** -0.5)


@pytest.mark.parametrize("shift", [-0.5, 0.3, 3.0])
@pytest.mark.parametrize("price", [0.01, 1.0, 100.0])
def test_the_scale_is_that_of_a_search(price: float, shift: float) -> None:
    draw = torch.Generator().manual_seed(2)
    leads = torch.randn(30, generator=draw, dtype=torch.float64) + shift
    r = leads.numpy()

    def objective(s: float) -> float:
        return float(4.0 * s * s + 2 * price * (np.maximum(1.0 - s * r, 0.0) ** 2).sum())

    least = minimize_scalar(
        objective, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-12}
    )
    assert soft_margin(leads, 2.0, price) == pytest.approx(least.fun**-0.5, rel=1e-8)


def test_the_soft_solution_has_efficiency_one_and_no_other_matrix_more() -> None:
    first = random_head("planted")
    choices = random_choices(first, 24)
    assert not fit_choices([first], [choices])[0].feasible
    fit = fit_choices([first], [choices], price=2.0)[0]
    W = fit.solution.W[:d]
    draw = torch.Generator().manual_seed(1)
    for noise, expected in ((0.0, 1.0), (0.3, None), (3.0, None)):
        moved = W + noise * W.abs().mean() * torch.randn(d, d, generator=draw, dtype=W.dtype)
        head = Head(7.0 * moved, torch.eye(d, dtype=W.dtype), first.hidden, scale=1.0)
        own = fit_choices([head], [choices], price=2.0)[0]
        if expected is None:
            assert own.efficiency < 0.999
        else:
            assert own.efficiency == pytest.approx(expected, abs=1e-9)
            assert own.cosine == pytest.approx(1.0, abs=1e-9)


def test_cvxpy_finds_the_same_soft_margin_and_slack() -> None:
    cp: Any = pytest.importorskip("cvxpy")
    head = random_head("second")
    choices = random_choices(head, 10)
    fit = fit_choices([head], [choices], price=3.0)[0]
    problem = choice_problem(head, choices)
    price = priced(problem, 3.0)
    W, slack = cp.Variable((d, d)), cp.Variable(10)
    left, right = problem.left.numpy(), problem.right.numpy()
    rows = cp.sum(cp.multiply(left @ W, right), axis=1)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    assert price == pytest.approx(3.0 / (lengths**2).mean())
    goal = cp.sum_squares(W) / 2 + price * cp.sum_squares(slack)
    each = np.repeat(np.eye(10), T - 1, axis=0)
    cp.Problem(cp.Minimize(goal), [rows >= 1 - each @ slack]).solve(solver=cp.CLARABEL)
    assert fit.best == pytest.approx((2 * goal.value) ** -0.5, rel=1e-6)
    np.testing.assert_allclose(fit.slack.numpy(), slack.value, atol=1e-4)


def test_a_low_price_compares_mean_leads() -> None:
    head = random_head("low")
    own = hands(head, selections(head), Settings(queries=9, draws=1))
    fit = fit_choices([head], own, price=1e-5)[0]
    W = fit.solution.W[:d]
    best = fit.leads(fit.problem.apply(W)).mean() / torch.linalg.matrix_norm(W)
    mean = float(fit.leads(fit.rows).mean() / fit.length / best)
    assert mean > 0.1
    assert fit.efficiency == pytest.approx(mean, rel=1e-3)


def test_a_head_without_any_gain_has_efficiency_zero() -> None:
    head = random_head("gain")
    own = hands(head, selections(head), Settings(queries=9, draws=1))
    against = Head(-head.W_Q, head.W_K, head.hidden)
    assert fit_choices([against], own, price=1.0)[0].efficiency < 1e-6


def test_a_high_price_is_the_hard_margin() -> None:
    head = random_head("limit")
    own = hands(head, selections(head), Settings(queries=5, draws=1))
    hard, soft = (fit_choices([head], own, price=price)[0] for price in (math.inf, 1e9))
    assert soft.margin == pytest.approx(hard.margin, rel=1e-5)
    assert soft.best == pytest.approx(hard.best, rel=1e-5)
    assert soft.cosine == pytest.approx(hard.cosine, rel=1e-5)
    assert float(soft.slack.max()) < 1e-6


def test_the_scales_of_head_and_tokens_change_nothing() -> None:
    head = random_head("scales")
    own = hands(head, selections(head), Settings(queries=14, draws=1))[0]
    fit = fit_choices([head], [own], price=2.0)[0]
    for other in (Head(9.0 * head.W_Q, head.W_K, head.hidden),
                  Head(head.W_Q, head.W_K, 5.0 * head.hidden)):  # fmt: skip
        again = fit_choices([other], [own], price=2.0)[0]
        assert again.efficiency == pytest.approx(fit.efficiency, rel=1e-9)
        torch.testing.assert_close(again.slack, fit.slack, rtol=1e-7, atol=1e-9)


def test_a_zero_query_has_slack_one_and_changes_nothing() -> None:
    head = random_head("zero")
    own = random_choices(head, 8)
    X = head.hidden.clone()
    X[int(own.text[3]), int(own.position[3])] = 0.0
    head = Head(head.W_Q, head.W_K, X)
    fit = fit_choices([head], [own], price=2.0)[0]
    assert float(fit.slack[3]) == 1.0
    W = fit.solution.W[:d]
    best = Head(W, torch.eye(d, dtype=W.dtype), X, scale=1.0)
    assert fit_choices([best], [own], price=2.0)[0].efficiency == pytest.approx(1.0, abs=1e-9)


def test_a_batch_of_soft_fits_is_the_loop() -> None:
    head = random_head("batch")
    other = Head(2.0 * head.W_Q + head.W_K, head.W_K, head.hidden)
    own = [hands(head, selections(head), Settings(queries=9, draws=1))[0]] * 2
    both = fit_choices([head, other], own, price=1.0)
    for one, fit in zip((head, other), both, strict=True):
        alone = fit_choices([one], own[:1], price=1.0)[0]
        assert alone.efficiency == pytest.approx(fit.efficiency)
        torch.testing.assert_close(alone.slack, fit.slack)


def test_saturated_queries_are_asked_together() -> None:
    head = random_head("saturated", 3.0)
    queries = selections(head)
    settings = Settings(which="saturated", saturated=0.8)
    dealt = hands(head, queries, settings)
    strong = queries[queries.share > 0.8]
    assert len(dealt) == 1
    assert 4 < len(strong) == len(dealt[0]) < len(queries)
    pairs = {(int(i), int(t)) for i, t in zip(dealt[0].text, dealt[0].position, strict=True)}
    assert pairs == {(int(i), int(t)) for i, t in zip(strong.text, strong.position, strict=True)}
    study = study_heads([head], settings)[0]
    assert (study.draws, study.feasible, study.asked, study.held) == (1, 1, len(strong), 1.0)
    assert study.efficiency.value == fit_choices([head], dealt)[0].efficiency
    assert 0.0 < study.efficiency.null < 1.0  # of queries that are not saturated, if need be
    assert math.isnan(study.kept.value)


def test_all_queries_have_slack() -> None:
    head = random_head("all")
    settings = Settings(which="all", price=0.5)
    study = study_heads([head], settings)[0]
    own = hands(head, selections(head), settings)
    assert len(own) == 1
    fit = fit_choices([head], own, price=0.5)[0]
    assert study.asked == n * T
    assert study.efficiency.value == fit.efficiency
    assert study.kept.value == float((fit.slack < 1.0).double().mean()) > 0.5
    assert study.free.value < study.kept.value
    assert 0.0 <= study.free.null <= study.kept.null <= 1.0
    again = study_heads([head], settings)[0]
    assert again.efficiency.null == study.efficiency.null  # same seed, same bits
    assert Settings(which="all").cost == 1.0


@pytest.mark.parametrize("price", [math.inf, 1.0])
def test_too_many_queries_are_dealt_into_few_hands(
    price: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = random_head("many")
    settings = Settings(which="all", price=price)
    for name in ("_NUMBERS", "_SOFT_NUMBERS"):
        monkeypatch.setattr(hands_module, name, 900)
    most = largest(head, settings)
    width = d + 1 + (most if price == 1.0 else 0)
    assert most * (T - 1) * width <= 900 < (most + 1) * (T - 1) * (width + 1)
    dealt = hands(head, selections(head), settings)
    assert len(dealt) == -(-n * T // most)
    assert all(len(own) <= most for own in dealt)
    taken = {(int(i), int(t)) for own in dealt for i, t in zip(own.text, own.position, strict=True)}
    assert len(taken) == n * T
    assert widest(head, selections(head), 1).gap.max() == selections(head).gap.max()


def test_equal_tokens_contradict_what_is_selected() -> None:
    study = study_heads([tied()], Settings(which="all", price=math.inf))[0]
    assert (study.feasible, study.held < 1.0) == (0, True)
    assert study.contradiction is not None
    demand = study.contradiction.demands[0]
    assert {demand.chosen, demand.other} == {0, 1}
    widest_too = study_heads([tied()], Settings(queries=3, draws=1))[0]
    assert widest_too.contradiction is not None
    soft = study_heads([tied()], Settings(which="all", price=10.0))[0]
    assert soft.feasible == 1
    assert soft.contradiction is None
    assert soft.kept.value < 1.0


def test_the_record_names_a_contradiction() -> None:
    head, settings = tied(), Settings(which="all", price=math.inf)
    heads = am.models.Heads((head,), head.words, 0.0)
    record = heads_record("tied", heads, study_heads(heads, settings), settings)
    assert record["heads"][0]["contradiction"]["demands"][0]["text"] == 0
    sentence = record["sentences"][-1]
    assert sentence.startswith("Layer 0, head 0: No W does, because in text 0 query “")
    assert sentence.endswith(
        "wants “a” (0) over “a” (1), but these tokens are equal, or the query is zero."
    )
    assert "Some W selects the same tokens for 0 of 1 head." in record["sentences"][-2]


def test_a_head_without_saturated_queries_says_so() -> None:
    study = study_heads([random_head("none", 0.01)], Settings(which="saturated"))[0]
    assert study.reason == "no query gives one token more than 90% of its attention"
    assert (study.draws, study.asked, study.shown) == (0, 0, [])
    detail = am.models.examine_head(random_head("none", 0.01), Settings(which="saturated"))
    assert detail.reason == study.reason


def test_guards_go_and_the_soft_margin_grows() -> None:
    settings = Settings(which="all", price=1.0)
    detail = am.models.examine_head(random_head("guards"), settings)
    margins = [detail.best, *detail.without.values()]
    assert list(detail.without) == [1, 10]
    assert margins == sorted(margins)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"which": "some"}, "which: got 'some'; needs one of widest, saturated, all"),
        ({"price": 0.0}, "price: got 0; needs a number above 0"),
        ({"price": math.nan}, "price: got nan; needs a number above 0"),
        ({"price": "low"}, "price: got 'low'; needs a number above 0"),
    ],
)
def test_wrong_settings_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        Settings(**change)


def test_slack_in_the_nuclear_norm_is_refused() -> None:
    head = random_head("nuclear")
    own = random_choices(head, 3)
    with pytest.raises(am.InputError, match="norm: got 'nuc' beside a finite price; needs 'fro'"):
        fit_choices([head], [own], "nuc", price=1.0)


def test_square_keeps_the_rows_of_soft_problems() -> None:
    """With a bias of the queries, the rows for slack come below the zero row of W."""
    head = random_head("bias", biases=(torch.ones(m, dtype=torch.float64), None))
    own = hands(head, selections(head), Settings(queries=6, draws=1))[0]
    fit = fit_choices([head], [own], price=1.0)[0]
    assert fit.solution.W.shape == (d + 1 + 6, d + 1)
    assert square(head).shape == fit.problem.shape == (d + 1, d + 1)
    assert 0.0 < fit.efficiency < 1.0
