"""What is said of heads: planted answers, closed forms, a second computation, the real model."""

import math

import pytest
import torch

import attnmargin as am
from attnmargin.models import Choices, Head, Settings, fit_choices, random_head, selections
from attnmargin.models.fit import choice_problem, square
from attnmargin.models.hands import hands
from attnmargin.models.measure import Measure, of_draws, of_texts, with_scores
from attnmargin.models.queries import widest
from attnmargin.models.span import TokenSpan, inside, projected
from attnmargin.models.study import study_heads
from tests.models.instances import minilm_heads, small_model


def random_tensors(name: str, n: int = 4, T: int = 7, d: int = 6) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(sum(map(ord, name)))
    shapes = ((3, d), (3, d), (n, T, d))
    return tuple(torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes)


def planted(queries: int = 5) -> tuple[Head, Choices, torch.Tensor]:
    """A head whose W is the max-margin solution of the choices of another one, plus what is
    outside of the span: queries and tokens have a last entry that no other one shares."""
    W_Q, W_K, X = random_tensors("planted")
    X = torch.nn.functional.pad(X, (0, 2))
    X[..., -1] = 1.0  # tokens share it, so that no difference has it
    W_Q, W_K = (torch.nn.functional.pad(W, (0, 2)) for W in (W_Q, W_K))
    first = Head(W_Q, W_K, X)
    own = hands(first, selections(first), Settings(queries=queries, draws=1))[0]
    W = am.solve(choice_problem(first, own)).W
    extra = torch.zeros_like(W)
    extra[-1] = 3.0  # rows that act on the shared entry of tokens
    extra[:, -2] = 5.0  # columns that no query has
    return Head(W + extra, torch.eye(8, dtype=X.dtype), X, scale=1.0), own, W


def test_the_max_margin_solution_has_efficiency_and_cosine_one() -> None:
    head, own, W = planted()
    fit = fit_choices([head], [own])[0]
    assert fit.efficiency == pytest.approx(1.0, abs=1e-9)
    assert fit.cosine == pytest.approx(1.0, abs=1e-9)
    assert fit.margin == pytest.approx(1.0 / float(torch.linalg.matrix_norm(W)), rel=1e-9)
    raw = torch.nn.functional.cosine_similarity(head.W.flatten(), W.flatten(), dim=0)
    assert float(raw) < 0.5  # without the projection, the cosine says little


def test_scaling_a_head_changes_neither_efficiency_nor_cosine() -> None:
    W_Q, W_K, X = random_tensors("scaling")
    fits = []
    for factor in (1.0, 7.0):
        head = Head(factor * W_Q, W_K, X)
        fits.append(fit_choices([head], [hands(head, selections(head), Settings(queries=4))[0]])[0])
    assert fits[0].efficiency == pytest.approx(fits[1].efficiency, rel=1e-9)
    assert fits[0].cosine == pytest.approx(fits[1].cosine, rel=1e-9)
    assert 0.0 < fits[0].efficiency < 1.0


def test_rows_of_a_problem_are_logit_differences() -> None:
    W_Q, W_K, X = random_tensors("rows")
    b = torch.tensor([1.0, -2.0, 0.5], dtype=X.dtype)
    head = Head(W_Q, W_K, X, biases=(b, None), causal=True)
    choices = Choices(torch.tensor([1, 2]), torch.tensor([4, 6]), torch.tensor([2, 0]))
    problem = choice_problem(head, choices)
    rows = problem.apply(square(head)).unflatten(0, (2, -1))
    for k, (i, t, s) in enumerate(((1, 4, 2), (2, 6, 0))):
        gaps = head.logits(i)[t, s] - head.logits(i)[t]
        rivals = [r for r in range(7) if r != s]
        there = problem.mask.unflatten(0, (2, -1))[k]
        assert there.tolist() == [r <= t for r in rivals]  # causal: later tokens are no rivals
        torch.testing.assert_close(rows[k][there], gaps[rivals][there])


def test_a_batch_of_fits_is_the_loop() -> None:
    W_Q, W_K, X = random_tensors("batch")
    heads = [Head(W_Q, W_K, X), Head(W_K, W_Q, X)]
    own = [hands(head, selections(head), Settings(queries=3))[0] for head in heads]
    both = fit_choices(heads, own)
    for head, choices, fit in zip(heads, own, both, strict=True):
        assert fit.efficiency == pytest.approx(fit_choices([head], [choices])[0].efficiency)


def test_projections_are_those_of_least_squares() -> None:
    W_Q, W_K, X = random_tensors("span", d=9)
    X[..., 3] = 2.0
    head = Head(W_Q, W_K, X)
    problem = choice_problem(head, hands(head, selections(head), Settings(queries=5))[0])
    P, Q = (torch.linalg.pinv(v) @ v for v in (problem.left[problem.mask], problem.query))
    expected = P @ square(head) @ Q
    tokens = TokenSpan(X, head.inside)
    assert tokens.basis.shape == (9, 8)
    torch.testing.assert_close(projected(square(head), problem), expected)
    torch.testing.assert_close(projected(square(head), problem, tokens), expected)
    few = problem.left[problem.mask][:3]  # these do not span all differences
    torch.testing.assert_close(tokens.inside(few, square(head)), inside(few, square(head)))


def test_selections_are_sorted_softmax() -> None:
    W_Q, W_K, X = random_tensors("selections")
    head = Head(W_Q, W_K, X, causal=True)
    own = selections(head)
    assert len(own) == 4 * 6  # the first query sees itself alone
    shares = head.attention[own.text, own.position]
    torch.testing.assert_close(own.share, shares.max(-1).values)
    assert torch.equal(own.token, shares.argmax(-1))
    top = shares.topk(2).values
    torch.testing.assert_close(own.gap, (top[:, 0] / top[:, 1]).log())
    entropy = torch.special.entr(shares).sum(-1) / (own.position + 1.0).log()
    torch.testing.assert_close(own.entropy, entropy)


def test_hands_share_the_widest_gaps() -> None:
    W_Q, W_K, X = random_tensors("hands")
    head = Head(W_Q, W_K, X)
    queries = selections(head)
    dealt = hands(head, queries, Settings(queries=3, draws=2))
    taken = {(int(t), int(p)) for own in dealt for t, p in zip(own.text, own.position, strict=True)}
    widest = queries.gap.argsort(descending=True)[:6]
    assert taken == {(int(queries.text[k]), int(queries.position[k])) for k in widest}
    assert [len(own) for own in dealt] == [3, 3]


def test_queries_that_see_the_same_tokens_count_once() -> None:
    W_Q, W_K, X = random_tensors("twins")
    X[1] = X[0]  # the same text
    X[2, :3] = X[0, :3]  # the same beginning
    for causal, count in ((False, 3 * 7), (True, 6 + 0 + 4 + 6)):
        head = Head(W_Q, W_K, X, causal=causal)
        queries = selections(head)
        own = widest(head, queries, 100)
        assert len(own) == count
        assert own.gap.tolist() == sorted(own.gap.tolist(), reverse=True)
        assert len(widest(head, queries, 5)) == 5


def test_random_heads_keep_the_spectrum_and_differ() -> None:
    W_Q, W_K, X = random_tensors("null")
    b = torch.ones(3, dtype=X.dtype)
    head = Head(W_Q, W_K, X, biases=(b, None), causal=True)
    one, two = (random_head(head, draw) for draw in (0, 1))
    torch.testing.assert_close(one.singular_values(), head.singular_values())
    assert one.W.shape == head.W.shape
    assert not torch.allclose(one.W, two.W)
    assert torch.equal(one.W, random_head(head, 0).W)  # same seed, same bits
    assert not torch.equal(one.W, random_head(head, 0, seed=1).W)
    assert one.causal


def test_random_rotary_heads_keep_the_spectra_of_their_factors() -> None:
    head = am.models.read_heads(small_model("qwen2"), [[3, 4, 5, 6]])[1, 3]
    own = random_head(head, 0)

    def spectrum(W: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        assert bias is not None
        return torch.linalg.svdvals(torch.cat((W, bias[:, None]), -1).double())

    for pair, other in (((own.W_Q, own.b_Q), (head.W_Q, head.b_Q)),
                        ((own.W_K, own.b_K), (head.W_K, head.b_K))):  # fmt: skip
        torch.testing.assert_close(spectrum(*pair), spectrum(*other), rtol=1e-5, atol=1e-6)


def test_a_trained_direction_stands_out_and_a_random_one_does_not() -> None:
    head, *_ = planted()
    _, _, X = random_tensors("planted")
    W_Q, W_K, _ = random_tensors("other")
    plain = Head(W_Q, W_K, X)
    settings = Settings(queries=5, draws=6)
    good, bad = study_heads([head], settings)[0], study_heads([plain], settings)[0]
    assert good.cosine.value > good.cosine.null
    assert abs(bad.efficiency.z) < 4.0
    assert bad.draws == 5 or bad.draws == 6
    assert bad.gap < 1e-12


def test_rotary_heads_have_selections_but_no_margin() -> None:
    study = study_heads(am.models.read_heads(small_model("llama"), [[3, 4, 5, 6]], heads=0))[0]
    assert "one W per distance" in study.reason
    assert math.isnan(study.efficiency.value)
    assert 0.0 <= study.saturation.value <= 1.0
    assert study.shown[0].guards == []
    head = am.models.read_heads(small_model("llama"), [[3, 4, 5, 6]], heads=0)[0]
    with pytest.raises(am.InputError, match="whose positions are rotary; needs one W"):
        fit_choices([head], [hands(head, selections(head), Settings())[0]])


def test_a_head_of_which_no_row_is_moved_has_margin_zero() -> None:
    head = Head([[1.0, 1.0]], [[1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])  # equal logits for both
    study = study_heads([head])[0]
    assert (study.margin, study.efficiency.value, study.shown[0].margin) == (0.0, 0.0, 0.0)


def test_texts_of_one_token_have_no_selection() -> None:
    W_Q, W_K, X = random_tensors("one", T=1)
    study = study_heads([Head(W_Q, W_K, X)])[0]
    assert study.reason == "no query sees two tokens"
    assert study.queries == 0
    assert study.shown == []


def test_equal_tokens_that_ask_for_different_ones_are_infeasible() -> None:
    X = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    head = Head([[1.0, 0.0]], [[1.0, 0.0]], X)
    choices = Choices(*torch.tensor([[0, 0, 0], [1, 1, 0]]).unbind(-1))
    fit = fit_choices([head], [choices])[0]  # equal queries, one wants (1, 0), the other (0, 1)
    assert not fit.feasible
    assert math.isnan(fit.best)


def test_intervals_and_scores_in_closed_form() -> None:
    own = of_draws([1.0, 2.0, 3.0], [0.0, 2.0])
    assert (own.value, own.null, own.spread) == pytest.approx((2.0, 1.0, 2.0**0.5))
    assert own.high - own.value == pytest.approx(4.302652729911275 / 3**0.5)  # t, 2 degrees
    texts = of_texts(torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([0, 0, 1, 1]), [])
    assert texts.value == 0.5
    assert texts.high > 1.0  # two texts that disagree say nothing
    alone = of_texts(torch.tensor([1.0, 0.0]), torch.tensor([0, 0]), [])
    assert math.isnan(alone.low)
    scored = with_scores([own, Measure(0.0, 0.0, 0.0, 1.0, 2.0)])
    assert [s.z for s in scored] == pytest.approx([1 / 3**0.5, -1 / 3**0.5])  # √((2 + 4)/2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"queries": 0}, "queries: got 0; needs a whole number"),
        ({"draws": 0}, "draws: got 0; needs a whole number"),
        ({"saturated": 1.0}, "saturated: got 1.0; needs a share between 0 and 1"),
        ({"seed": 0.5}, "seed: got 0.5; needs a whole number"),
    ],
)
def test_wrong_settings_are_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        Settings(**change)  # type: ignore[arg-type]


def test_heads_of_minilm_beat_random_ones() -> None:
    heads = [minilm_heads()[place] for place in ((0, 5), (2, 7), (5, 11))]
    for study in study_heads(heads, Settings(queries=10)):
        assert study.feasible == study.draws == 4
        assert study.efficiency.z > 3.0
        assert study.cosine.z > 3.0
        assert study.gap < 1e-12
        assert study.spectrum.rank == 32


def test_guards_go_and_the_margin_grows() -> None:
    head = minilm_heads()[2, 7]
    detail = am.models.examine_head(head, Settings(queries=6, draws=1))
    margins = [detail.best, *detail.without.values()]
    assert list(detail.without) == [1, 10]
    assert margins == sorted(margins)
    assert margins[-1] > margins[0]
    assert detail.contradiction is None
    assert 0.0 < detail.frobenius < 1.0
    assert math.isnan(detail.nuclear)


def test_the_nuclear_norm_has_its_own_efficiency() -> None:
    W_Q, W_K, X = random_tensors("nuclear")
    detail = am.models.examine_head(Head(W_Q, W_K, X), Settings(queries=4, draws=1), nuclear=True)
    assert 0.0 < detail.nuclear <= 1.0
    assert detail.nuclear != pytest.approx(detail.frobenius)
