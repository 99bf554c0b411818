"""Joint paths of head and weights: the least loss over all selections."""

import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.attention.softmax import objective
from attnmargin.training.loop import with_head
from attnmargin.training.regularization import selected
from attnmargin.training.regularization.landscape import JointLandscape


def log_loss(data: am.AttentionData, v: Tensor, W: Tensor) -> Tensor:
    """Log of the mean logistic loss, from its formula."""
    assert data.y is not None
    s = torch.softmax((data.X @ W.unsqueeze(-3) @ data.z.unsqueeze(-1))[..., 0], -1)
    u = data.y * ((s.unsqueeze(-2) @ data.X)[..., 0, :] * v.unsqueeze(-2)).sum(-1)
    return torch.nn.functional.softplus(-u).mean(-1).log()


def test_the_joint_loss_and_its_gradient() -> None:
    """Against autograd; tokens share an offset, which the head sees."""
    generator = torch.Generator().manual_seed(0)
    data = am.random_data(3, 4, 3, trials=5, name="joint loss")
    shifted = am.AttentionData(data.X + 0.7, data.z, data.y)
    for own in (data, shifted):
        goal = objective(with_head(own, "vW"), "linear", "logistic")
        x = torch.randn(5, 12, generator=generator, dtype=torch.float64, requires_grad=True)
        value = log_loss(own, x[:, :3], x[:, 3:].reshape(5, 3, 3))
        found, g = JointLandscape(goal, torch.zeros(5, 3, 3).double()).at(x.detach())
        torch.testing.assert_close(found, value.detach())
        torch.testing.assert_close(g, torch.autograd.grad(value.sum(), x)[0])


@pytest.mark.parametrize("p", [1.75, 3.0])
def test_joint_paths_select_the_largest_label_margin(p: float) -> None:
    """Against all selections of random data, solved one by one."""
    data = am.random_data(2, 3, 3, trials=4, name="joint paths")
    assert data.y is not None
    path = am.regularization_path(data, (100.0,), "vW", p=p, search=False)
    every = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    margins = []
    for alpha in every:
        chosen = alpha.expand(4, -1)
        W = am.solve(am.token_problem(data.X, data.z, chosen), p)
        margin = am.selections.label_margin(data, chosen, p)
        margins.append(margin.where(W.feasible, 0.0))
    largest = torch.stack(margins, -1)
    assert bool((largest.amax(-1) > 0).all())
    assert torch.equal(path.selection[-1], every[largest.argmax(-1)])


def test_large_data_have_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end where no change of one token helps, mostly at the best of all selections."""
    data = am.random_data(3, 3, 4, trials=6, name="swaps")
    goal = objective(with_head(data, "vW"), "linear", "logistic")
    every = selected._ranked(goal, 2.0, 30.0)[0]
    monkeypatch.setattr(selected, "_ALL", 1)
    found = selected._ranked(goal, 2.0, 30.0)[0]
    near = torch.cat((found.unsqueeze(0), selected._swaps(found, 3)))
    loss = selected._heads(goal, 2.0, 30.0, near)[0]
    assert bool((loss[0] <= loss[1:] + 1e-9).all())
    assert int((found == every).all(-1).sum()) >= 4


def test_hidden_tokens_are_not_selected() -> None:
    data = am.random_data(2, 3, 3, trials=4, name="hidden joint")
    mask = torch.ones(4, 2, 3, dtype=torch.bool)
    mask[:, 0, 0] = mask[:, 1, 2] = False
    hidden = am.AttentionData(data.X, data.z, data.y, None, mask)
    goal = objective(with_head(hidden, "vW"), "linear", "logistic")
    ranked = selected._ranked(goal, 2.0, 30.0)[0]
    assert bool((ranked[:, 0] != 0).all())
    assert bool((ranked[:, 1] != 2).all())
