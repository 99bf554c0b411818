"""What is measured of a trained classifier."""

import numpy as np
import pytest

import attnmargin as am
from attnmargin.text.classifier.analysis import attention_shares, pivotal_shares, sparsity
from tests.texts import pieces, shape


def test_analyses_of_a_model() -> None:
    data = pieces(20)
    model = am.text.TextClassifier(shape(data)).eval()
    edges = np.linspace(0.0, 1.0, 11)
    found = sparsity(model, edges)
    assert set(found) == {"W_Q", "W_K", "W_V"}
    assert found["W_Q"]["all"] == sum(found["W_Q"]["counts"]) == 2 * 16 * 16
    shares = attention_shares(model, data)
    assert [len(s) for s in shares] == (data.lengths - 2).tolist()
    assert all(s.sum() == pytest.approx(1.0) for s in shares)
    share, rank = pivotal_shares([np.array([0.2, 0.5, 0.3])], [["a", "b", "c"]], ["c"])
    assert (share.tolist(), rank.tolist()) == ([0.3], [2])
