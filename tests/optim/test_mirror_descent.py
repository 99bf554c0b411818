"""MirrorDescent: closed form, SGD to the last bit, safety near zero, and real training."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

import attnmargin as am
from attnmargin.margin.norms import mirror_step
from tests.optim.training import Model, batch, fit


def parameters(seed: int = 0, dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    rng = torch.Generator().manual_seed(seed)
    made = [nn.Parameter(torch.randn(shape, generator=rng).to(dtype)) for shape in ((3, 4), (5,))]
    for w in made:
        w.grad = torch.randn(w.shape, generator=rng).to(dtype)
    return made


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 10.0])
def test_update_by_the_formula(p: float, foreach: bool | None) -> None:
    """Paper B, ℓp-AttGD."""
    made = parameters()
    before = [(w.detach().clone(), w.grad.clone()) for w in made]
    am.MirrorDescent(made, lr=0.1, p=p, foreach=foreach).step()
    for w, (old, g) in zip(made, before, strict=True):
        up = old.sign() * old.abs() ** (p - 1) - 0.1 * g
        torch.testing.assert_close(w.data, up.sign() * up.abs() ** (1 / (p - 1)), rtol=1e-9, atol=0)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_two_is_sgd_to_the_last_bit(momentum: float, foreach: bool) -> None:
    ours, theirs = parameters(dtype=torch.float32), parameters(dtype=torch.float32)
    one = am.MirrorDescent(ours, lr=0.1, momentum=momentum, foreach=foreach)
    two = torch.optim.SGD(theirs, lr=0.1, momentum=momentum, foreach=foreach)
    for step in range(5):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = b.grad = torch.full_like(a, 0.3) * a.detach() + step
        one.step()
        two.step()
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("p", [1.01, 1.1, 3.0, 10.0])
def test_small_and_zero_weights_are_safe(p: float, dtype: torch.dtype) -> None:
    values = [0.0, 1e-30, -1e-20, 1e-5, 1.0]
    w = nn.Parameter(torch.tensor(values, dtype=dtype))
    old = w.detach().clone()
    w.grad = torch.zeros_like(w)
    am.MirrorDescent([w], lr=0.1, p=p).step()
    assert torch.equal(w.data, old)
    w.grad = torch.tensor([1e-3, -1e-3, 1e-3, -1e-3, 0.5], dtype=dtype)
    am.MirrorDescent([w], lr=0.1, p=p).step()
    assert bool(torch.isfinite(w).all())
    assert float(w.data[0]) <= 0.0 <= float(w.data[1])


def test_groups_have_their_own_options() -> None:
    first, second = parameters()
    groups: list[dict[str, Any]] = [{"params": [first]}, {"params": [second], "p": 1.5, "lr": 0.2}]
    alone = parameters()
    am.MirrorDescent(groups, lr=0.1, p=3.0).step()
    am.MirrorDescent([alone[0]], lr=0.1, p=3.0).step()
    am.MirrorDescent([alone[1]], lr=0.2, p=1.5).step()
    assert torch.equal(first, alone[0])
    assert torch.equal(second, alone[1])


def test_normalised_steps_do_not_see_the_size_of_gradients() -> None:
    one, two = parameters(), parameters()
    for w in two:
        w.grad.mul_(1e6)
    for made in (one, two):
        am.MirrorDescent(made, lr=0.1, p=3.0, normalize=True).step()
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b)
    plain = parameters()
    q = 1.5
    flat = torch.cat([w.grad.flatten() for w in plain])
    size = (flat.abs() ** q).sum() ** (1 / q)
    for w in plain:
        w.grad.div_(size)
    am.MirrorDescent(plain, lr=0.1, p=3.0).step()
    for a, b in zip(one, plain, strict=True):
        torch.testing.assert_close(a, b)


def test_weight_decay_is_decoupled() -> None:
    one, two = parameters(), parameters()
    am.MirrorDescent(one, lr=0.1, p=1.5, weight_decay=0.3).step()
    with torch.no_grad():
        for w in two:
            w.mul_(1 - 0.1 * 0.3)
    am.MirrorDescent(two, lr=0.1, p=1.5).step()
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b)


def test_closure_and_missing_gradients() -> None:
    w, idle = nn.Parameter(torch.tensor([2.0])), nn.Parameter(torch.tensor([1.0]))
    optimiser = am.MirrorDescent([w, idle], lr=0.1, p=1.5)

    def closure() -> float:
        optimiser.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        return float(loss.detach())

    assert optimiser.step(closure) == 4.0
    assert float(idle.data) == 1.0
    assert float(w.data) < 2.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr: got -1.0"),
        ({"lr": float("nan")}, "lr: got nan"),
        ({"p": 1.0}, "p: got 1.0; needs a number with 1 < p"),
        ({"p": float("inf")}, "p: got inf"),
        ({"momentum": 1.0}, "momentum: got 1.0"),
        ({"weight_decay": -0.1}, "weight_decay: got -0.1"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.MirrorDescent(parameters(), **options)
    with pytest.raises(am.InputError, match=words):
        am.MirrorDescent([{"params": parameters(), **options}])


@pytest.mark.parametrize("touched", [0, 1, 700, 2000])
def test_tables_of_many_rows_change_where_the_gradient_is(touched: int) -> None:
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(2000, 3, generator=generator)
    g = torch.zeros_like(w)
    g[:touched] = torch.randn(touched, 3, generator=generator)
    table = torch.nn.Parameter(w.clone())
    table.grad = g
    am.MirrorDescent([table], lr=0.1, p=1.3).step()
    assert torch.equal(table.detach(), mirror_step(w, 0.1 * g, 1.3))


def test_sparse_gradients_are_refused() -> None:
    layer = nn.Embedding(4, 2, sparse=True)
    layer(torch.tensor([1])).sum().backward()
    with pytest.raises(am.InputError, match="gradient: got a sparse one"):
        am.MirrorDescent(layer.parameters()).step()


RATES = {1.1: 0.02, 2.0: 0.1, 3.0: 0.02}


def trainer(model: nn.Module, p: float) -> tuple[am.MirrorDescent, Any]:
    optimiser = am.MirrorDescent(model.parameters(), lr=RATES[p], p=p)
    return optimiser, torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 200)


@pytest.mark.parametrize("p", [1.1, 2.0, 3.0])
def test_a_transformer_learns(p: float) -> None:
    torch.manual_seed(0)
    model = Model()
    losses = fit(model, *trainer(model, p), 120)
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("p", [1.1, 2.0, 3.0])
def test_save_load_continue_gives_the_same_bits(p: float) -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser, scheduler = trainer(model, p)
    fit(model, optimiser, scheduler, 5)
    saved = [copy.deepcopy(x.state_dict()) for x in (model, optimiser, scheduler)]
    first = fit(model, optimiser, scheduler, 5)
    again = Model()
    optimiser, scheduler = trainer(again, p)
    for part, state in zip((again, optimiser, scheduler), saved, strict=True):
        part.load_state_dict(state)
    assert fit(again, optimiser, scheduler, 5) == first


# torch's own compiler imports what it calls deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("p", [1.1, 2.0, 3.0])
def test_compiled_model_and_step_train_alike(p: float) -> None:
    torch.manual_seed(0)
    plain = Model()
    compiled = copy.deepcopy(plain)
    expected = fit(plain, *trainer(plain, p), 10)
    optimiser, scheduler = trainer(compiled, p)
    optimiser.__dict__["step"] = torch.compile(optimiser.step)
    # The step is ours, so the whole compiler takes it; of the model, capture and gradients do.
    losses = fit(torch.compile(compiled, backend="aot_eager"), optimiser, scheduler, 10)
    assert losses == pytest.approx(expected, rel=1e-3)


def test_mixed_precision() -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser, _ = trainer(model, 1.1)
    x, y = batch()
    scaler = torch.amp.GradScaler("cpu")
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_half_precision_computes_in_single() -> None:
    w = nn.Parameter(torch.zeros(10_000, dtype=torch.float16))
    w.grad = torch.full_like(w, 1000.0)
    am.MirrorDescent([w], lr=1.0, p=3.0, normalize=True).step()
    assert float(w.data[0]) < 0.0
    tiny = nn.Parameter(torch.zeros(1, dtype=torch.float16))
    tiny.grad = torch.full_like(tiny, -1e-4)
    am.MirrorDescent([tiny], lr=1e-4, p=3.0).step()
    assert float(tiny.data) == pytest.approx(1e-4, rel=1e-2)


def test_powers_near_one_do_not_overflow_on_the_way() -> None:
    w = nn.Parameter(torch.ones(1))
    w.grad = torch.full((1,), 3.0)
    am.MirrorDescent([w], lr=1.0, p=1.01).step()
    assert float(w.data) == pytest.approx(-(2.0**100), rel=1e-3)


def test_rates_as_tensors() -> None:
    for p in (2.0, 3.0):
        one, two = parameters(), parameters()
        am.MirrorDescent(one, lr=torch.tensor([0.1]), p=p).step()
        am.MirrorDescent(two, lr=0.1, p=p).step()
        for a, b in zip(one, two, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)
    with pytest.raises(am.InputError, match="lr: got"):
        am.MirrorDescent(parameters(), lr=torch.tensor([0.1, 0.2]))


def test_complex_parameters_are_refused() -> None:
    w = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    w.grad = torch.ones_like(w)
    with pytest.raises(am.InputError, match="a complex one"):
        am.MirrorDescent([w], p=3.0).step()
