"""An offset that all tokens of a sequence share cancels in the softmax, and costs no digit."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.attention.softmax import sequences
from attnmargin.margin.norms import mirror_step

# Offsets with the dtype of the tokens, and the digits that the steps must have.
OFFSETS = [
    (0.0, torch.float64, 1e-11),
    (300.0, torch.float32, 2e-5),
    (1e4, torch.float64, 1e-11),
    (1e7, torch.float64, 1e-11),
    (1e10, torch.float64, 1e-11),
]
WAYS: list[dict[str, Any]] = [
    {},
    {"parameter": "KQ"},
    {"method": "mirror", "p": 1.5},
    {"method": "mirror", "p": 3.0},
]
Gradient = Callable[[Tensor], Tensor]


def moved(offset: float, dtype: torch.dtype, hidden: bool = False) -> am.AttentionData:
    """Tokens with an offset in all columns; the head sees none of it, up to rounding of tokens."""
    data = am.random_data(3, 4, 6, name="offset")
    X = (data.X + offset * torch.tensor([1.0, -0.8, 1.0, 0.5, 1.2, 0.7])).to(dtype)
    v = torch.tensor([0.8, 1.0, 0.0, 1.0, -1.0, 1.0], dtype=dtype)
    mask = torch.ones(3, 4, dtype=torch.bool)
    if hidden:
        mask[1, 2:] = False
        X[1, 2:] = 1e30
    return am.AttentionData(X, data.z.to(dtype), data.y.to(dtype), v, mask if hidden else None)


def plain_loss(data: am.AttentionData, W: Tensor, kind: str) -> Tensor:
    """The formula of the papers in float64, with every token minus the first, which is exact."""
    total = W.new_zeros(())
    for i in range(data.n):
        X = data.X[i].double()
        X = X if data.mask is None else X[data.mask[i]]
        D, z, v = X - X[0], data.z[i].double(), data.v.double()
        u = data.y[i].double() * (X[0] @ v + (torch.softmax(D @ W @ z, 0) @ D) @ v)
        total = total + (torch.nn.functional.softplus(-u) if kind == "logistic" else -u)
    return total / data.n


def by_autograd(parts: list[Tensor], loss: Callable[..., Tensor]) -> list[Tensor]:
    at = [part.clone().requires_grad_() for part in parts]
    return list(torch.autograd.grad(loss(*at), at))


def plain_run(data: am.AttentionData, start: list[Tensor], steps: int, **options: Any) -> Tensor:
    """Descend by autograd, for W or for K and Q."""
    p, kind = options.get("p", 2.0), options.get("loss", "logistic")
    parts = [part.double() for part in start]
    for _ in range(steps):
        gradients = by_autograd(
            parts, lambda *x: plain_loss(data, x[0] if len(x) == 1 else x[0] @ x[1].T, kind)
        )
        for k, g in enumerate(gradients):
            if options.get("normalize", True):
                g = g / torch.linalg.vector_norm(g, p / (p - 1.0))
            parts[k] = mirror_step(parts[k], 0.1 * g, p, by_logs=False)
    return parts[0] if len(parts) == 1 else parts[0] @ parts[1].T


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize(("offset", "dtype", "digits"), OFFSETS)
def test_early_steps_are_those_of_autograd(
    offset: float, dtype: torch.dtype, digits: float, options: dict[str, Any], normalize: bool
) -> None:
    data = moved(offset, dtype)
    run = am.train(data, steps=8, record=8, normalize=normalize, loss="linear", **options)
    start = am.train(data, steps=0, parameter=options.get("parameter", "W")).last
    expected = plain_run(data, list(start), 8, normalize=normalize, loss="linear", **options)
    assert float(am.correlation(run.W[-1].double(), expected)) > 1.0 - digits
    torch.testing.assert_close(run.W[-1].double(), expected, rtol=digits, atol=10 * digits)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("by", ["coefficients", "entries"])
def test_every_way_to_step_and_hidden_tokens(
    by: str, hidden: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled and plain steps, W by coefficients and by entries; hidden tokens hold anything."""
    if not compiled:
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    if by == "entries":
        monkeypatch.setattr("attnmargin.training.loop.Coefficients.pays", lambda flat: False)
    data = moved(1e7, torch.float64, hidden)
    run = am.train(data, steps=8, record=4, loss="linear")
    expected = plain_run(data, [torch.zeros(6, 6)], 8, loss="linear")
    torch.testing.assert_close(run.W[-1], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("normalize", [True, False])
def test_a_trained_head_sees_the_tokens_themselves(normalize: bool) -> None:
    data = moved(1e7, torch.float64)
    options: dict[str, Any] = {"loss": "linear", "normalize": normalize}
    run = am.train(data, "vW", steps=5, record=5, **options)

    def loss(v: Tensor, W: Tensor) -> Tensor:
        own = am.AttentionData(data.X, data.z, data.y, data.v)
        own.v = v
        return plain_loss(own, W, "linear")

    parts = [torch.zeros(6, dtype=torch.float64), torch.zeros(6, 6, dtype=torch.float64)]
    for _ in range(5):
        pairs = zip(parts, by_autograd(parts, loss), strict=True)
        parts = [x - 0.1 * (g / max(g.norm(), 1e-300) if normalize else g) for x, g in pairs]
    torch.testing.assert_close(run.v[-1], parts[0], rtol=1e-9, atol=0)
    torch.testing.assert_close(run.W[-1] / run.W[-1].norm(), parts[1] / parts[1].norm(),
                               rtol=1e-7, atol=1e-7)  # fmt: skip


def test_offsets_under_the_logistic_loss() -> None:
    """The offset is where the head has zeros: scores do not know it."""
    data = moved(0.0, torch.float64)
    v = torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0, 0.0], dtype=torch.float64)
    X = data.X + torch.tensor([0.0, 0.0, 0.0, 1e7, 1e7, -1e7])
    data = am.AttentionData(X, data.z, data.y, v)
    run = am.train(data, steps=20, record=20)
    expected = plain_run(data, [torch.zeros(6, 6)], 20)
    torch.testing.assert_close(run.W[-1], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("parameter", "p"), [("W", 2.0), ("W", 1.5), ("W", 3.0), ("KQ", 2.0), ("p", 2.0)]
)
def test_the_flow_does_not_see_an_offset(parameter: str, p: float) -> None:
    """Tokens on a grid, so that adding the offset is exact."""
    near, far = on_a_grid()
    runs = [am.gradient_flow(data, 1.5, parameter, p, "linear", record=3) for data in (near, far)]
    torch.testing.assert_close(runs[1].W, runs[0].W, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(runs[1].probability, runs[0].probability)


def on_a_grid(offset: float = 2.0**30) -> tuple[am.AttentionData, am.AttentionData]:
    """The same tokens without and with an offset that is orthogonal to the head."""
    data = am.random_data(3, 4, 6, trials=2, name="offset")
    X = (data.X * 2**20).round() / 2**20
    v = torch.tensor([1.0, 1.0, 0.5, 0.0, 2.0, 1.0], dtype=torch.float64)
    across = offset * torch.tensor([1.0, -1.0, 2.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    near, far = (am.AttentionData(x, data.z, data.y, v) for x in (X, X + across))
    return near, far


@pytest.mark.parametrize("parameter", ["W", "KQ"])
def test_the_path_of_least_loss_does_not_see_an_offset(parameter: str) -> None:
    near, far = on_a_grid()
    paths = [am.regularization_path(data, [1.0, 8.0], parameter) for data in (near, far)]
    torch.testing.assert_close(paths[1].loss, paths[0].loss, rtol=1e-7, atol=0)
    torch.testing.assert_close(paths[1].W, paths[0].W, rtol=1e-3, atol=1e-3)


# Normalised steps of K and Q double a difference now and then: a few only.
@pytest.mark.parametrize(("parameter", "steps"), [("W", 2000), ("KQ", 100)])
def test_long_runs_and_measures_do_not_see_an_offset(parameter: str, steps: int) -> None:
    near, far = on_a_grid()
    runs = [am.train(data, parameter, steps=steps, record=steps // 4) for data in (near, far)]
    torch.testing.assert_close(runs[1].W, runs[0].W, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(runs[1].log_gradient, runs[0].log_gradient, rtol=1e-6, atol=1e-6)
    W = runs[0].W[-1]
    probabilities = [am.probabilities(data, W) for data in (near, far)]
    torch.testing.assert_close(*probabilities, rtol=1e-9, atol=1e-12)
    gradients = [am.gradient(data, W) for data in (near, far)]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-9, atol=1e-9)
    expected = torch.einsum("bntd,bde,bne->bnt", far.X, W, far.z)
    torch.testing.assert_close(am.logits(far, W), expected)
    chosen = am.optimal_tokens(near).flip(-1)
    barriers = [am.selections.score_barrier(data, W, chosen) for data in (near, far)]
    torch.testing.assert_close(*barriers, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["relu", "quadratic"])
def test_other_heads_form_differences_too(kind: str) -> None:
    """Heads whose gradients do not see the offset: it lies where V and v have zeros."""
    data = moved(0.0, torch.float64)
    V = torch.cat((torch.randn(5, 4, generator=torch.Generator().manual_seed(0)),
                   torch.zeros(5, 2)), -1).double()  # fmt: skip
    grid = (data.X * 2**20).round() / 2**20
    across = torch.tensor([0.0, 0.0, 0.0, 0.0, 2.0**24, -(2.0**24)], dtype=torch.float64)
    head = am.heads.ReLUHead(V) if kind == "relu" else lambda o: torch.tanh(o[..., :4] @ V[0, :4])
    runs = [
        am.train(am.AttentionData(X, data.z, data.y), steps=50, record=50, head=head)
        for X in (grid, grid + across)
    ]
    torch.testing.assert_close(runs[1].W[-1], runs[0].W[-1], rtol=1e-9, atol=1e-9)


def test_a_batch_with_and_without_an_offset_is_its_loop() -> None:
    near, far = on_a_grid()
    both = am.AttentionData(
        torch.cat((near.X, far.X)), torch.cat((near.z, far.z)), torch.cat((near.y, far.y)), near.v
    )
    run = am.train(both, steps=100, record=100)
    for k in range(4):
        torch.testing.assert_close(run.W[:, k], am.train(both[k], steps=100, record=100).W)


def test_what_tokens_share_is_subtracted_exactly() -> None:
    """A column with one sign and within a factor of two; hidden tokens have no say."""
    X = torch.tensor([[[3.0, -4.0, 1.0, 1.0], [5.0, -3.0, 3.0, -1.0], [9.0, -1.0, 1.0, 1.0]]])
    z = torch.ones(1, 4)
    flat = sequences(am.AttentionData(X, z, mask=[[True, True, False]]))
    assert flat.relative[0, 0].tolist() == [[0, -1, 1, 1], [2, 0, 3, -1], [0, 0, 0, 0]]
    whole = sequences(am.AttentionData(X, z))
    assert whole.shared is None
    assert whole.relative is whole.X
    several = am.AttentionData(
        X, z.expand(1, 2, 4), mask=[[[True, True, False], [True, False, False]]]
    )
    apart = sequences(several)
    assert apart.relative[0, 0].tolist() == flat.relative[0, 0].tolist()
    assert apart.relative[0, 1].tolist() == [[0.0] * 4] * 3


def test_offset_of_several_queries_with_their_own_masks() -> None:
    near, far = on_a_grid()
    mask = torch.tensor([[[1, 1, 1, 1], [1, 1, 0, 0]]], dtype=torch.bool).expand(2, 3, 2, 4)
    runs = []
    for data in (near, far):
        z = torch.stack((data.z, -data.z), -2)
        causal = am.AttentionData(data.X, z, data.y[..., None].expand(2, 3, 2), data.v, mask)
        runs.append(am.train(causal, steps=300, record=300))
    torch.testing.assert_close(runs[1].W, runs[0].W, rtol=1e-8, atol=1e-8)
