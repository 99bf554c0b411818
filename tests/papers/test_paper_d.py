"""Paper D: figures of corpora, and logistic regression beside them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.papers.d.corpora import (
    read_reviews,
    reviews_sentence,
    select_lengths,
    token_claims,
)
from attnmargin.papers.d.layers import logistic_regression
from attnmargin.papers.d.tokens import _claims_fig2
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


def _by_length(count: int) -> am.text.Corpus:
    """Per class, so many texts of 1,000 and of 1,500 characters, and of one fewer and one more."""
    texts = ["x" * length for length in (999, 1000, 1500, 1501) for _ in range(2 * count)]
    return am.text.Corpus(texts, np.arange(len(texts)) % 2, ("-", "+"))


def test_reviews_of_the_papers_lengths_are_kept_if_there_are_enough() -> None:
    many, few = _by_length(1000), _by_length(999)
    kept, fitting = select_lengths(many)
    assert fitting == (2000, 2000)
    assert {len(text) for text in kept.texts} == {1000, 1500}
    kept, fitting = select_lengths(few)
    assert fitting == (1998, 1998)
    assert kept is few


def test_captions_say_which_reviews_were_used() -> None:
    own = {
        "reviews": np.array(8004),
        "words": np.array(["a", "b"]),
        "fitting": np.array([504, 1254]),
    }
    assert reviews_sentence("yelp", own) == (
        "Yelp: 8,004 reviews of all lengths (of the paper's 1,000 to 1,500 characters there are "
        "only 504 bad and 1,254 good ones), 2 tokens after cleaning"
    )
    own["fitting"] = np.array([2000, 2001])
    assert reviews_sentence("yelp", own).startswith("Yelp: 8,004 reviews of 1,000 to 1,500 char")
    own["fitting"] = np.empty(0)
    assert reviews_sentence("imdb", own) == "IMDB: 8,004 reviews, 2 tokens after cleaning"


def test_both_panels_are_claimed() -> None:
    """Forty frequent tokens: half of the signs right, attention in the order of importance."""
    positive = np.arange(40) * 10 + 5
    own = {"positive": positive, "negative": 400 - positive, "with_p": np.abs(positive - 200.0),
           "with_v": np.ones(40)}  # fmt: skip
    signs, ranks = token_claims("a corpus", own)
    assert signs.measured.value == 0.5
    assert (str(signs.verdict), str(ranks.verdict)) == ("fails", "holds")
    assert ranks.measured.value == pytest.approx(1.0)
    assert ranks.measured.count == 40
    _, other = token_claims("a corpus", own | {"with_p": -own["with_p"]})
    assert str(other.verdict) == "fails"


def test_the_cloud_around_zero_is_that_of_irrelevant_tokens() -> None:
    """Three irrelevant tokens near zero; then one of them changes places with a relevant one."""
    exact = np.array([0.1, -0.1, 0.5, 0.0, 0.0, 0.0])
    own = {"exact": exact, "difference": exact + 0.01, "with_p": np.abs(exact + 0.01),
           "with_v": exact + 0.01}  # fmt: skip
    verdicts = [str(claim.verdict) for claim in _claims_fig2({"levels": own})]
    assert verdicts == ["holds"] * 6
    moved = own["difference"].copy()
    moved[[0, 3]] = moved[[3, 0]]
    verdicts = [
        str(claim.verdict) for claim in _claims_fig2({"levels": own | {"difference": moved}})
    ]
    assert verdicts[3:] == ["fails", "fails", "holds"]
    far = own["with_v"].copy()
    far[exact == 0] = 0.2
    verdicts = [str(claim.verdict) for claim in _claims_fig2({"levels": own | {"with_v": far}})]
    assert verdicts[5] == "fails"


def test_all_imdb_reviews_are_read(tmp_path: Path) -> None:
    rows = [f"{'superb' if k % 2 else 'dull'} film,{k % 2},{'train' if k < 60 else 'test'}"
            for k in range(120)]  # fmt: skip
    (tmp_path / "imdb.csv").write_text("\n".join(["text,label,split", *rows]))
    assert len(read_reviews(tmp_path, "imdb", whole=True).tokens.pieces) == 120


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
