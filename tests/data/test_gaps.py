"""One gap of scores: what random data are drawn by is what the theory asks for."""

import pytest
import torch

import attnmargin as am
from attnmargin.data.gaps import best_gap


@pytest.mark.parametrize("least", [0.1, 0.4])
def test_drawn_data_have_the_gap_that_scores_show(least: float) -> None:
    data = am.random_data(4, 3, 5, trials=20, name="homes", min_gap=least)
    assert float(am.selections.score_gaps(data).min()) >= least - 1e-12
    assert data.y is not None
    assert data.v is not None
    gamma = data.y.unsqueeze(-1) * torch.einsum("...ntd,...d->...nt", data.X, data.v)
    torch.testing.assert_close(am.selections.score_gaps(data), best_gap(gamma))


def test_gaps_by_hand() -> None:
    assert best_gap(torch.tensor([[1.0, 4.0, 2.5], [0.0, 0.0, -1.0]])).tolist() == [1.5, 0.0]
    assert best_gap(torch.tensor([[1.0], [2.0]])).tolist() == [torch.inf, torch.inf]
    assert am.random_data(3, 1, 2, min_gap=5.0).T == 1
