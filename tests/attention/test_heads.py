"""Heads: several queries, and what does not fit."""

from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am


def test_cross_entropy_with_several_queries() -> None:
    rng = np.random.default_rng(0)
    data = am.AttentionData(rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4)))
    head = am.heads.VocabularyHead(rng.standard_normal((6, 4)), rng.integers(0, 6, (2, 5)))
    run = am.train(data, head=head, steps=30, record=30)
    assert float(run.loss[-1]) < float(run.loss[0])
    one = am.heads.VocabularyHead(rng.standard_normal((1, 4)), np.zeros((2, 5), int))
    G, _ = am.gradient(data, torch.eye(4).double(), one)
    assert G.abs().max() == 0


def test_heads_refuse_what_does_not_fit() -> None:
    data = am.random_data(2, 3, 4, trials=3, name="fit")
    W = torch.eye(4, dtype=torch.float64)
    cases: list[tuple[Any, str]] = [
        (lambda: am.heads.ReLUHead(torch.ones(4)), "V: got shape"),
        (lambda: am.gradient(data, W, am.heads.ReLUHead(torch.ones(2, 5))), "V: got shape"),
        (
            lambda: am.gradient(data, W, am.heads.ReLUHead(torch.ones(2, 2, 4))),
            "one for all 3 trials",
        ),
        (lambda: am.gradient(data, W, am.heads.QuadraticHead(torch.ones(3), 1.0)), "v: got shape"),
        (
            lambda: am.gradient(data, W, am.heads.QuadraticHead(torch.ones(4), [1.0, 2])),
            "weight: got",
        ),
        (
            lambda: am.gradient(data, W, am.heads.VocabularyHead(W, [0, 1, 2])),
            "labels: got 3 labels",
        ),
        (lambda: am.gradient(data, torch.zeros(2, 4, 4).double()), "W: got shape"),
        (lambda: am.gradient(data, W, loss="log"), "loss: got 'log' with the score"),
    ]
    for call, words in cases:
        with pytest.raises(am.InputError, match=words):
            call()
    G, _ = am.gradient(data, W, head=lambda o: torch.ones_like(o[..., 0]))
    assert G.abs().max() == 0
