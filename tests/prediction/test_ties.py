"""Best tokens that tie: they are selected together, and how they share is left open."""

from pathlib import Path

import pytest
import torch

import attnmargin as am
from attnmargin.attention.score import best_tokens
from attnmargin.margin.builders import set_problem
from attnmargin.prediction.sentences import headline
from tests.commands import command


def tied_data(trials: int, sequences: int = 2) -> am.AttentionData:
    """In the first sequences, a second token gets the best score by a shift along the head."""
    data = am.random_data(4, 5, 6, trials=trials, name="ties")
    X, v = data.X.clone(), data.v
    assert v is not None
    best = am.optimal_tokens(data)
    for i in range(sequences):
        rows, other = torch.arange(trials), (best[:, i] + 1) % 5
        lift = ((X[rows, i, best[:, i]] - X[rows, i, other]) * v).sum(-1) / (v * v).sum(-1)
        X[rows, i, other] += lift.unsqueeze(-1) * v
    return am.AttentionData(X, data.z, data.y, v)


def plain_shares(data: am.AttentionData, W: torch.Tensor, sets: torch.Tensor) -> torch.Tensor:
    """Attention of sets, straight from the formula."""
    logits = torch.einsum("bntd,bde,bne->bnt", data.X, W, data.z)
    return (torch.softmax(logits, -1) * sets).sum(-1)


def test_tied_tokens_are_selected_together() -> None:
    """Proved runs, continued with autograd: the loss falls, and the share bound is kept."""
    data = tied_data(60)
    found = am.predict(data, steps=2000)
    ending = found.ending
    assert ending is not None
    rows = ending.together.nonzero()[:, 0]
    assert len(rows) >= 40
    assert found.selection.dtype == torch.bool
    assert bool((found.selection[rows].sum(-1)[:, :2] == 2).all())
    part, W = data[rows], ending.W[rows].clone().requires_grad_()
    sets, best = found.selection[rows], am.optimal_tokens(data[rows])
    assert bool(sets.gather(-1, best.unsqueeze(-1)).all())
    assert part.y is not None
    assert part.v is not None
    before = torch.full((len(rows),), torch.inf, dtype=torch.float64)
    for _ in range(200):
        logits = torch.einsum("bntd,bde,bne->bnt", part.X, W, part.z)
        output = torch.einsum("bnt,bntd,bd->bn", torch.softmax(logits, -1), part.X, part.v)
        loss = torch.log1p(torch.exp(-part.y * output)).mean(-1)
        (slope,) = torch.autograd.grad(loss.sum(), W)
        size = slope.flatten(1).norm(dim=-1)
        assert bool((loss.detach() <= before + 1e-12).all())
        before = loss.detach()
        step = (found.longest[rows] / size.clamp_min(1e-300))[:, None, None]
        W = (W - step * slope).detach().where(size[:, None, None] > 1e-9, W.detach())
        W.requires_grad_()
        share = plain_shares(part, W.detach(), sets).amin(-1)
        assert bool((share >= found.share[rows] - 1e-12).all())


def test_members_without_ties_keep_numbers() -> None:
    tied, plain = tied_data(3), am.random_data(4, 5, 6, trials=3, name="others")
    assert tied.v is not None
    assert plain.v is not None
    assert tied.y is not None
    assert plain.y is not None
    both = am.AttentionData(*(torch.cat((getattr(tied, k), getattr(plain, k))) for k in "Xzyv"))
    found, alone = am.predict(both, steps=2000), am.predict(plain, steps=2000)
    assert found.selection.dtype == torch.bool
    for k in range(3):
        one = found[3 + k]
        assert one.selection.tolist() == alone[k].selection.tolist()
        assert one.since.tolist() == alone[k].since.tolist()
        torch.testing.assert_close(one.direction, alone[k].direction)


def test_sets_are_preferred_by_the_shortest_weights() -> None:
    """Against cvxpy, with rows written out; no equalities inside a set."""
    cp = pytest.importorskip("cvxpy")
    data = tied_data(4)
    sets = best_tokens(data)
    solution = am.solve(set_problem(data.X, data.z, sets))
    for b in range(4):
        W = cp.Variable((6, 6))
        rows = [
            (data.X[b, i, a] - data.X[b, i, t]).numpy() @ W @ data.z[b, i].numpy() >= 1
            for i in range(4)
            for a in sets[b, i].nonzero().flatten().tolist()
            for t in (~sets[b, i]).nonzero().flatten().tolist()
        ]
        cp.Problem(cp.Minimize(cp.norm(W, "fro")), rows).solve(solver="CLARABEL")
        assert float(solution.value[b]) == pytest.approx(float(cp.norm(W, "fro").value), rel=1e-6)


def test_words_confirmation_and_page_of_ties(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tied_data(1)[0]
    found = am.predict(one)
    numbers = [row.nonzero().flatten().tolist() for row in best_tokens(one)]
    assert found.verdict == am.Verdict.FROM_START
    assert headline(found, None).endswith(f"will select the tokens {numbers}")
    assert "how they share it is not proved: tokens" in found.explain()
    assert float(found.correlation(1e9)) == -1.0
    assert bool(am.confirm(found, steps=500).agrees)
    assert found.search is not None
    assert not bool(found.search.within(found.chosen)[len(found.search.selections) :].any())
    file = tmp_path / "tied.npz"
    one.save(file)
    code, out, _ = command(capsys, "predict", file, "--html", tmp_path / "page.html", "--json")
    assert code == 0
    assert str(numbers[0]) in out
