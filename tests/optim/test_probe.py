"""A learning rate by trial: it trains, changes nothing, and says when no rate does."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

import attnmargin as am
from tests.optim.training import Model, batch, fit


def closure_of(model: nn.Module, optimiser: Any) -> Any:
    x, y = batch()

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0])
def test_mirror_descent_trains_at_the_suggested_rate(p: float) -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser = am.MirrorDescent(model.parameters(), lr=1e-3, p=p)
    rate = am.optim.suggest_lr(model, optimiser, closure_of(model, optimiser))
    optimiser.param_groups[0]["lr"] = 0.5 * rate
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimiser, 1.0)
    losses = fit(model, optimiser, scheduler, 100)
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("norm", ["spectral", "max"])
def test_steepest_descent_trains_at_the_suggested_rate(norm: str) -> None:
    torch.manual_seed(0)
    model = Model()
    optimiser = am.SteepestDescent(model.parameters(), norm=norm, momentum=0.9)
    rate = am.optim.suggest_lr(model, optimiser, closure_of(model, optimiser), least=1e-5)
    optimiser.param_groups[0]["lr"] = 0.5 * rate
    losses = fit(model, optimiser, torch.optim.lr_scheduler.ConstantLR(optimiser, 1.0), 100)
    assert losses[-1] < 0.5 * losses[0]


def test_everything_is_as_before() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    x = torch.randn(20, 3)
    groups = [{"params": model[0].parameters(), "lr": torch.tensor(0.2)},
              {"params": model[3].parameters(), "lr": 0.1}]  # fmt: skip
    optimiser = torch.optim.SGD(groups, momentum=0.9)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (model(x) - x[:, :1]).square().mean()
        loss.backward()
        return loss

    closure()
    optimiser.step()
    before = copy.deepcopy((model.state_dict(), optimiser.state_dict()))
    random = torch.get_rng_state()
    one = am.optim.suggest_lr(model, optimiser, closure, steps=3)
    assert torch.equal(torch.get_rng_state(), random)
    for old, new in zip(before[0].values(), model.state_dict().values(), strict=True):
        assert torch.equal(old, new)
    for i, state in before[1]["state"].items():
        assert torch.equal(state["momentum_buffer"],
                           optimiser.state_dict()["state"][i]["momentum_buffer"])  # fmt: skip
    assert [float(group["lr"]) for group in optimiser.param_groups] == pytest.approx([0.2, 0.1])
    assert am.optim.suggest_lr(model, optimiser, closure, steps=3) == one


def test_losses_that_do_not_fall() -> None:
    model = nn.Linear(1, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure() -> float:
        model.weight.grad = torch.zeros(1, 1)
        return 3.0

    with pytest.raises(am.InputError, match="closure: got a loss of 3 that no rate"):
        am.optim.suggest_lr(model, optimiser, closure)
    with pytest.raises(am.InputError, match=r"least: got 2\.0 with most 1\.0"):
        am.optim.suggest_lr(model, optimiser, closure, least=2.0, most=1.0)
    with pytest.raises(am.InputError, match="steps: got 0"):
        am.optim.suggest_lr(model, optimiser, closure, steps=0)
