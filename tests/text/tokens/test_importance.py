"""Token importance: statistics beside trained models."""

from dataclasses import replace

import numpy as np
import pytest

import attnmargin as am
from attnmargin.embeddings.statistics import TokenStatistics
from attnmargin.text.tokens.importance import attention_rank
from tests.texts import one_word_decides


def test_unbalanced_corpora_are_ordered_by_chance() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["film", "plot", "scene"], 4)) for _ in range(100)]
    texts = [f"{text} {'superb' if k < 80 else 'dull'}" for k, text in enumerate(texts)]
    own = am.text.Corpus(texts, (np.arange(100) < 80).astype(np.int64), ("neg", "pos"))
    found = am.text.token_importance(own, am.text.Cleaning(least=1))
    assert found.row(int(found.ranked("positive", 1)[0]))["token"] == "superb"
    assert found.row(int(found.ranked("negative", 1)[0]))["token"] == "dull"
    listed = {found.row(int(s))["token"] for s in found.ranked("negative", 9)}
    assert "superb" not in listed


@pytest.mark.parametrize("layers", [1, 2])
def test_training_agrees_with_statistics(layers: int) -> None:
    found = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1, stem=False))
    recipe = am.text.TokenRecipe(layers=layers, d=64, lr=2e-2, epochs=30, batch=20, parts=2)
    found = replace(found, run=am.text.train_tokens(found.pieces, recipe))
    record = found.agreement(least=5)
    assert record["sign agreement"] == 1.0
    assert found.agreement()["seen at least"] == 20  # a small corpus
    assert record["accuracy"] == 1.0
    tokens = {found.row(int(s))["token"] for s in found.ranked("attended", 4)}
    assert tokens == {"superb", "lovely", "dull", "awful"}


def test_ranks_of_attention_are_those_of_frequent_tokens() -> None:
    known = TokenStatistics(np.array([9, 5, 1, 1]), np.array([1, 5, 9, 0]))
    to_p = np.array([2.0, -1.0, 1.0, -9.0])  # |difference|: 0.8, 0, 0.8, and a rare token
    rank, count = attention_rank(known, to_p, least=10)
    assert count == 3
    assert rank == pytest.approx(np.sqrt(3) / 2)  # ranks 3, 1, 2 beside 2.5, 1, 2.5
