"""Checks of data with nothing to choose, hidden tokens, thin factors and odd starts."""

import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_b import remark_1

HOLDS, FAILS = am.theory.Outcome.HOLDS, am.theory.Outcome.FAILS
OPEN = am.theory.Outcome.UNDECIDABLE
# What says that weights grow, or turn to W_mm.
ABOUT_W_MM = ("A: Theorem 2", "A: Theorem 3", "A: Theorem 3, by the queries", "A: Theorem 6",
              "A: Theorem 7", "A: Conjecture of Section 5.2", "A: Corollary 1", "A: Corollary 2",
              "B: Theorem 1", "B: Theorem 2", "B: Theorem 3", "B: Theorem 4", "B: Lemma 17",
              "B: Theorem 5")  # fmt: skip


def outcomes(data: am.AttentionData, *args: object, **how: object) -> dict[str, object]:
    found = am.theory.check_theory(data, *args, **how)  # type: ignore[arg-type]
    return {check.label: check.outcome for check in found}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def without_choice(hidden: bool) -> am.AttentionData:
    """Each query sees one token; with ``hidden``, by a mask."""
    X = drawn(2, 3 if hidden else 1, 4)
    mask = torch.tensor([[True, False, False]] * 2) if hidden else None
    return am.AttentionData(X, drawn(2, 4, seed=1), [1, -1], drawn(4, seed=2), mask)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_where_nothing_can_be_chosen_no_weights_grow(hidden: bool, started: bool) -> None:
    data = without_choice(hidden)
    init = drawn(4, 4, seed=3) if started else None
    found = outcomes(data, init=init)
    assert {name: found[name] for name in ABOUT_W_MM} == dict.fromkeys(ABOUT_W_MM, FAILS)
    run = am.train(data, lr=1.0, normalize=False, steps=5, init=init)
    assert torch.equal(run.W[-1], run.W[0])
    mask = None if data.mask is None else data.mask[:1]
    one = am.AttentionData(data.X[:1], data.z[:1], [1], data.v, mask)
    assert outcomes(one)["A: Theorem 4"] == FAILS


def test_equal_scores_leave_every_point_stationary() -> None:
    data = am.AttentionData([[[1.0, 0.0], [1.0, 1.0]]], [[1.0, 2.0]], [1], [1.0, 0.0])
    assert outcomes(data)["A: Theorem 3, by the queries"] == FAILS
    for seed in range(3):
        assert float(am.gradient(data, drawn(2, 2, seed=seed))[0].abs().max()) == 0.0


def test_hidden_tokens_need_no_width() -> None:
    """One token of seven is seen besides the best one: any d ≥ n serves."""
    mask = torch.zeros(2, 8, dtype=torch.bool)
    mask[:, :2] = True
    z, v = drawn(2, 2, seed=1), drawn(2, seed=2)
    padded = am.AttentionData(drawn(2, 8, 2), z, [1, -1], v, mask)
    short = am.AttentionData(padded.X[:, :2], z, [1, -1], v)
    for name in ("A: Theorem 1", "A: Theorem 8", "A: Assumption B.1, by width"):
        assert outcomes(padded)[name] == outcomes(short)[name], name
    assert outcomes(padded)["A: Theorem 1"] == HOLDS


def opposite() -> am.AttentionData:
    """W₁₁, W₂₂ ≥ 1, W₁₂ ≥ 1 and W₂₁ ≤ −1: the determinant is at least two, so the rank is two."""
    X = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]],
         [[1.0, 0.0], [0.0, 0.0]], [[0.0, -1.0], [0.0, 0.0]]]  # fmt: skip
    z = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    return am.AttentionData(X, z, [1, 1, 1, -1], [1.0, 1.0])


def test_thin_factors_may_have_no_solution() -> None:
    data, paths = opposite(), ("Theorem 2", "Theorem 9", "Theorem 10", "Corollary 1", "Corollary 2")
    wide, thin = (outcomes(data, "KQ", width=m) for m in (2, 1))
    assert {wide[f"A: {name}"] for name in paths} == {HOLDS}
    assert {thin[f"A: {name}"] for name in paths} == {OPEN}
    assert thin["A: Theorem 8"] == FAILS  # it asks for m = d
    assert {outcomes(data, width=1)[f"A: {name}"] for name in paths} == {HOLDS}


def test_an_empty_batch() -> None:
    data = am.random_data(2, 3, 4, trials=2, name="empty")[:0]
    for check in (*am.theory.check_theory(data), *am.theory.check_joint(data)):
        assert getattr(check.outcome, "shape", (0,)) == (0,), check.label


def test_a_list_of_two_starts_is_a_batch() -> None:
    data, W = am.random_data(2, 3, 4, trials=2, name="two starts"), drawn(2, 4, 4)
    for given in ([W[0], W[1]], [W[0].tolist(), W[1].tolist()]):
        start = Facts(data, init=given).start
        assert torch.equal(start.W, W)  # type: ignore[arg-type]
        assert start.factors is None
    assert Facts(data, "KQ", init=[W[0], W[1]]).start.factors is not None


@pytest.mark.parametrize(
    "init",
    [("a", "b"), (None, None), ([[1.0, 2.0], [3.0]], [[1.0]]), (drawn(4, 0), drawn(4, 0))],
)
@pytest.mark.parametrize("parameter", ["W", "KQ"])
def test_an_odd_pair_is_refused(parameter: str, init: object) -> None:
    with pytest.raises(am.InputError, match="init: got"):
        am.theory.check_theory(am.random_data(2, 3, 4, name="odd"), parameter, init=init)


def test_remark_1_says_nothing_at_zero_for_small_p() -> None:
    """The curvature of ψ is infinite at zero, and finite at the end of any step."""
    data = am.random_data(2, 3, 4, name="remark")
    assert remark_1(Facts(data, p=1.5, init=torch.zeros(4, 4).double())).outcome == OPEN
