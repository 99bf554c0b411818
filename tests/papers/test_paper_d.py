"""Paper D: figures of corpora, and logistic regression beside them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.papers.d.layers import logistic_regression
from attnmargin.text.tokens.models import TokenModel
from tests.texts import one_word_decides


def test_figures_of_corpora_run_on_a_small_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paper D's figures from a folder with two corpora, one of them with neutral rows."""
    from attnmargin.papers.d import layers as d_layers
    from attnmargin.papers.d import tokens as d_tokens
    from attnmargin.papers.engine.reproduce import reproduce
    from attnmargin.papers.registry import find

    data = tmp_path / "data"
    data.mkdir()
    rows = [f"{'superb' if k % 2 else 'dull'} film {k % 3} plot,{k % 2}" for k in range(450)]
    for name in ("imdb", "yelp"):
        neutral = ["so so,-1"] if name == "yelp" else []
        (data / f"{name}.csv").write_text("\n".join(["text,label", *rows, *neutral]))
    words = am.text.word_list(["superb dull film plot 0 1 2"])
    (data / "vocab.txt").write_text("\n".join(words))
    short = {k: am.text.TokenRecipe(layers=k, d=16, lr=1e-2, epochs=3, batch=20) for k in (1, 2)}
    monkeypatch.setattr(d_tokens, "RECIPE", short[1])
    monkeypatch.setattr(
        d_layers, "RECIPES", {f"imdb-{kind}": short[2] for kind in ("early", "long")}
    )
    for name in ("D:fig3", "D:fig1", "D:table"):
        record = reproduce(find(name), out=tmp_path / "out", data=data)
        assert record["claims"]
        assert [file for file in record["files"] if file.endswith(".png")]
    other = reproduce(find("D:fig3"), out=tmp_path / "other", data=data, seed=1)
    assert other["seed"] == 1
    first, second = (
        np.load(tmp_path / place / "D" / "fig3" / "points" / "imdb-layers1.npz")["with_v"]
        for place in ("out", "other")
    )
    assert not np.array_equal(first, second)
    text = (tmp_path / "out" / "D" / "table" / "tokens.md").read_text()
    assert text.count("- most positive: superb") == 2


def test_logistic_regression_is_the_model_without_attention() -> None:
    """Its optimum by autograd, with E and v for w and p = 0; and the pieces stay as they are."""
    own = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1)).pieces
    before, ridge = own.ids.copy(), 1e-3
    w, loss = logistic_regression(own, ridge, np.zeros(len(own.vocabulary)))
    assert np.array_equal(own.ids, before)
    model = TokenModel(len(w), 1).double()
    model.E.data, model.p.data = torch.from_numpy(w)[:, None], torch.zeros(1).double()
    model.v.data = torch.ones(1).double()
    f = torch.stack([model(torch.from_numpy(own.row(i))[None])[0] for i in range(len(own))])
    mean = F.softplus(-(2.0 * torch.from_numpy(own.labels) - 1.0) * f).mean()
    mean.backward()
    assert model.E.grad is not None
    assert loss == pytest.approx(mean.item())
    np.testing.assert_allclose(model.E.grad[:, 0].numpy(), -ridge * w, atol=1e-6)
