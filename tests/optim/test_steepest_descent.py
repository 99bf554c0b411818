"""SteepestDescent: the formula, each kind of parameter, groups, real training, and bad options."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnmargin as am
from attnmargin.margin.norms import as_norm
from tests.optim.training import Model, batch, fit

NORMS: list[str | float] = ["spectral", "max", "fro", "sum", "rows", "columns", "nuc", 1.5, 3.0]
SHAPES = ((3, 4), (5, 2), (5,), (2, 3, 2, 2), (3, 4), (0, 3), (), (1, 6))


def parameters(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    rng = torch.Generator().manual_seed(0)
    made = [nn.Parameter(torch.randn(shape, generator=rng).to(dtype)) for shape in SHAPES]
    for w in made:
        w.grad = torch.randn(w.shape, generator=rng).to(dtype)
    return made


def matrix(g: Tensor) -> Tensor:
    return g.reshape(len(g), -1) if g.ndim > 1 else g.reshape(-1, 1)


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("norm", NORMS)
def test_update_by_the_formula(norm: str | float, foreach: bool | None) -> None:
    made = parameters()
    before = [(w.detach().clone(), w.grad.clone()) for w in made]
    am.SteepestDescent(made, lr=0.1, norm=norm, exact=True, foreach=foreach).step()
    for w, (old, g) in zip(made, before, strict=True):
        if w.numel() == 0:
            continue
        moved = matrix(old - w.detach()) / 0.1
        N, D = as_norm(norm), matrix(g)
        assert float(N.value(moved)) == pytest.approx(1.0, rel=1e-9)
        assert float((moved * D).sum()) == pytest.approx(float(N.dual_value(D)), rel=1e-9)


def test_the_polar_factor_is_that_of_the_decomposition() -> None:
    w = parameters()[0]
    old, (U, _, Vh) = w.detach().clone(), torch.linalg.svd(w.grad, full_matrices=False)
    am.SteepestDescent([w], lr=0.1, exact=True).step()
    torch.testing.assert_close(w.detach(), old - 0.1 * U @ Vh, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(64, 32), (32, 64), (48, 48), (16, 4, 3, 3)])
def test_newton_schulz_is_close_to_the_polar_factor(shape: tuple[int, ...]) -> None:
    g = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    one, two = nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.zeros(shape))
    one.grad, two.grad = g, g.clone()
    am.SteepestDescent([one], lr=1.0).step()
    am.SteepestDescent([two], lr=1.0, exact=True).step()
    values = torch.linalg.svdvals(matrix(one.detach()))
    assert float(values[-1]) > 0.6
    assert float(values[0]) < 1.25
    aligned = torch.nn.functional.cosine_similarity(one.detach().ravel(), two.detach().ravel(), 0)
    assert float(aligned) > 0.95


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("norm", ["spectral", "max", "rows"])
def test_steps_do_not_see_the_size_of_gradients(norm: str, scale: float) -> None:
    one, two = parameters(torch.float32), parameters(torch.float32)
    for w in two:
        w.grad.mul_(scale)
    for made in (one, two):
        am.SteepestDescent(made, lr=0.1, norm=norm).step()
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_zero_gradients_do_not_move(norm: str | float, exact: bool) -> None:
    made = parameters(torch.float32)
    before = [w.detach().clone() for w in made]
    for w in made:
        w.grad.zero_()
    am.SteepestDescent(made, lr=0.1, norm=norm, exact=exact).step()
    assert all(torch.equal(w, old) for w, old in zip(made, before, strict=True))


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_taken_before_the_direction(nesterov: bool) -> None:
    w = nn.Parameter(torch.zeros(3, 4, dtype=torch.float64))
    optimiser = am.SteepestDescent([w], lr=0.1, momentum=0.8, nesterov=nesterov, exact=True)
    rng = torch.Generator().manual_seed(0)
    M = expected = torch.zeros(3, 4, dtype=torch.float64)
    for _ in range(10):
        w.grad = torch.randn(3, 4, generator=rng, dtype=torch.float64)
        optimiser.step()
        M = 0.8 * M + w.grad
        D = w.grad + 0.8 * M if nesterov else M
        expected = expected - 0.1 * am.norms.Spectral().steepest(D)
        torch.testing.assert_close(w.detach(), expected)


def test_momentum_and_weight_decay_of_signs_are_signum() -> None:
    w = nn.Parameter(torch.tensor([2.0, -3.0]))
    optimiser = am.SteepestDescent([w], lr=0.5, norm="max", momentum=0.5, weight_decay=0.1)
    w.grad = torch.tensor([4.0, 1.0])
    optimiser.step()
    torch.testing.assert_close(w.detach(), torch.tensor([2 * 0.95 - 0.5, -3 * 0.95 - 0.5]))
    w.grad = torch.tensor([-1.0, -1.0])  # the momentum is (1, −0.5)
    optimiser.step()
    torch.testing.assert_close(w.detach(), torch.tensor([1.4 * 0.95 - 0.5, -3.35 * 0.95 + 0.5]))


def test_groups_for_matrices_and_the_rest() -> None:
    model = Model()
    groups = am.optim.parameter_groups(model, rest_lr=0.01)
    assert [group["norm"] for group in groups] == ["spectral", "max"]
    assert all(w.ndim == 2 for w in groups[0]["params"])
    assert any(w is model.tokens.weight for w in groups[1]["params"])
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    optimiser = am.SteepestDescent(groups, lr=0.1)
    assert [group["lr"] for group in optimiser.param_groups] == [0.1, 0.01]
    model.body.requires_grad_(False)
    assert len(am.optim.parameter_groups(model)[0]["params"]) == 1


def test_tied_output_layers_are_embeddings() -> None:
    model = nn.ModuleDict({"tokens": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    model["head"].weight = model["tokens"].weight
    (group,) = am.optim.parameter_groups(model)
    assert group["norm"] == "max"
    assert len(group["params"]) == 1


def test_the_margin_is_in_the_representation() -> None:
    shown = repr(am.SteepestDescent(am.optim.parameter_groups(Model())))
    assert "Group 0: margin of each matrix in the norm 'spectral', proved for linear" in shown
    assert "Group 1: margin of each matrix in the norm 'max'" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr: got -1.0"),
        ({"norm": "odd"}, "norm: got 'odd'; needs 'fro', 'nuc', 'spectral'"),
        ({"norm": 1.0}, "norm: got p = 1"),
        ({"momentum": 1.0}, "momentum: got 1.0"),
        ({"nesterov": True}, "nesterov: got True with momentum 0; needs a momentum"),
        ({"weight_decay": -0.1}, "weight_decay: got -0.1"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.SteepestDescent(parameters(), **options)
    with pytest.raises(am.InputError, match=words):
        am.SteepestDescent([{"params": parameters(), **options}])


def test_complex_and_sparse_are_refused() -> None:
    with pytest.raises(am.InputError, match="params: got a complex one; needs real parameters"):
        am.SteepestDescent([nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))])
    layer = nn.Embedding(4, 2, sparse=True)
    layer(torch.tensor([1])).sum().backward()
    with pytest.raises(am.InputError, match="gradient: got a sparse one"):
        am.SteepestDescent(layer.parameters()).step()


RATES: dict[str | float, float] = {"spectral": 0.02, "max": 0.003, "fro": 0.05, "rows": 0.02}


def trainer(model: nn.Module, norm: str | float, **options: Any) -> tuple[Any, Any]:
    optimiser = am.SteepestDescent(model.parameters(), lr=RATES[norm], norm=norm, **options)
    return optimiser, torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 200)


@pytest.mark.parametrize("norm", list(RATES))
def test_a_transformer_learns(norm: str) -> None:
    torch.manual_seed(0)
    model = Model()
    losses = fit(model, *trainer(model, norm, momentum=0.9), 80)
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("norm", ["spectral", "rows"])
def test_save_load_continue_gives_the_same_bits(norm: str) -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser, scheduler = trainer(model, norm, momentum=0.9)
    fit(model, optimiser, scheduler, 5)
    saved = [copy.deepcopy(x.state_dict()) for x in (model, optimiser, scheduler)]
    first = fit(model, optimiser, scheduler, 5)
    again = Model()
    optimiser, scheduler = trainer(again, norm, momentum=0.9)
    for part, state in zip((again, optimiser, scheduler), saved, strict=True):
        part.load_state_dict(state)
    assert fit(again, optimiser, scheduler, 5) == first


# torch's own compiler imports what it calls deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("norm", ["spectral", "max", "rows"])
def test_compiled_steps_are_the_same(norm: str) -> None:
    made: list[list[nn.Parameter]] = []
    for compiles in (False, True):
        made.append(parameters(torch.float32)[:3])
        optimiser = am.SteepestDescent(made[-1], lr=0.1, norm=norm, momentum=0.9)
        step = torch.compile(optimiser.step, backend="aot_eager") if compiles else optimiser.step
        for _ in range(2):
            step()
    for plain, compiled in zip(*made, strict=True):
        torch.testing.assert_close(plain, compiled, rtol=1e-2, atol=1e-3)


def test_mixed_precision() -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser, _ = trainer(model, "spectral")
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", ["spectral", "fro", "max"])
def test_half_precision_computes_in_single(norm: str, dtype: torch.dtype) -> None:
    w = nn.Parameter(torch.zeros(100, 100, dtype=dtype))
    w.grad = 1000.0 * torch.eye(100, dtype=dtype)
    am.SteepestDescent([w], lr=0.5, norm=norm).step()
    assert w.dtype == dtype
    assert bool(torch.isfinite(w).all())
    assert float(w.detach()[0, 0]) < 0.0


def test_a_rate_may_be_a_tensor() -> None:
    one, two = parameters(), parameters()
    am.SteepestDescent(one, lr=0.1, norm="max").step()
    am.SteepestDescent(two, lr=torch.tensor([0.1], dtype=torch.float64), norm="max").step()
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_it_takes_the_steps_of_training() -> None:
    """The same norm in am.train, normalised: one attention matrix, by autograd."""
    data = am.random_data(8, 5, 4, name="optimiser")
    run = am.train(data, method=am.methods.Steepest("spectral", momentum=0.9), steps=20)
    W = nn.Parameter(torch.zeros(4, 4, dtype=torch.float64))
    optimiser = am.SteepestDescent([W], lr=0.1, momentum=0.9, exact=True)
    for _ in range(20):
        optimiser.zero_grad()
        s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.z), -1)
        u = data.y * torch.einsum("nt,ntd,d->n", s, data.X, data.v)
        torch.nn.functional.softplus(-u).mean().backward()
        optimiser.step()
    torch.testing.assert_close(W.detach(), run.W[-1], rtol=1e-9, atol=1e-9)
