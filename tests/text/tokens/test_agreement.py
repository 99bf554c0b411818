"""Agreement of the counts with the attention and the gradient of a model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.text.tokens.models import TokenModel
from tests.texts import one_word_decides


@pytest.mark.parametrize("layers", [1, 2])
def test_attributions_are_gradients_times_embeddings(layers: int) -> None:
    torch.manual_seed(0)
    model = TokenModel(5, 4, layers).double()
    ids, counts = torch.tensor([[0, 2], [3, 5]]), torch.tensor([[2, 1], [1, 0]])
    shares, slopes = model.attributions(ids, counts)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2).double())
    assert float(shares[1, 1]) == 0.0
    model(torch.tensor([[0, 2, 0]])).sum().backward()
    assert model.E.grad is not None
    expected = (model.E.grad * model.E).sum(-1).detach()
    torch.testing.assert_close(slopes[0], expected[[0, 2]])
    if layers == 1:
        a = (model.E @ model.p).detach()
        weights = torch.softmax(torch.stack([a[0] + np.log(2.0), a[2]]), -1)
        torch.testing.assert_close(shares[0], weights)


def trained() -> am.text.TokenImportance:
    found = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1))
    recipe = am.text.TokenRecipe(d=16, lr=2e-2, epochs=30, batch=20)
    return replace(found, run=am.text.train_tokens(found.pieces, recipe))


def test_a_model_that_learnt_the_counts_agrees_with_them() -> None:
    found = trained()
    both = am.text.model_agreement(found, least=5, samples=30)
    assert both is not None
    np.testing.assert_allclose(both.difference, found.statistics.difference[both.tokens])
    shares = both.attention * found.statistics.count[both.tokens]
    assert shares.sum() == pytest.approx(found.pieces.lengths.sum())  # attention sums to one
    for name in ("attention", "gradient"):
        rank, low, high = both.correlation(name)
        assert low <= rank <= high <= 1.0
        assert rank > 0.6
        assert both.gaps(name).sum() == pytest.approx(0.0, abs=1e-12)
    decided = np.abs(both.difference) > 0.9
    assert both.attention[decided].min() > both.attention[~decided].max()
    again = am.text.model_agreement(found, least=5, samples=30)
    assert again is not None
    assert np.array_equal(both.samples, again.samples)
    assert am.text.model_agreement(found, least=1000) is None
