"""Heads from plain tensors: closed forms, and a second computation of everything."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.models import Head, Rotary

m, d, n, T = 3, 5, 2, 6


def tensors(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(3)
    shapes = ((m, d), (m, d), (n, T, d), (m,), (m,))
    return tuple(torch.randn(s, generator=draw, dtype=torch.float64).to(dtype) for s in shapes)


def plain(W_Q, W_K, X, b_Q, b_K, seen):  # type: ignore[no-untyped-def]
    """Attention of one sequence, entry by entry."""
    out = torch.zeros(len(X), len(X), dtype=X.dtype)
    for t in range(len(X)):
        q = W_Q @ X[t] + b_Q
        logits = [float((W_K @ X[s] + b_K) @ q) / len(q) ** 0.5 for s in range(len(X))]
        weights = [np.exp(logits[s]) if seen[t, s] else 0.0 for s in range(len(X))]
        out[t] = torch.tensor(weights, dtype=X.dtype) / (sum(weights) or 1.0)
    return out


def test_attention_is_that_of_the_plain_loop() -> None:
    W_Q, W_K, X, b_Q, b_K = tensors()
    mask = torch.tensor([[True] * T, [True] * 4 + [False] * 2])
    for causal in (False, True):
        head = Head(W_Q, W_K, X, mask, biases=(b_Q, b_K), causal=causal)
        for i in range(n):
            seen = mask[i][:, None] & mask[i]
            expected = plain(W_Q, W_K, X[i], b_Q, b_K, seen.tril() if causal else seen)
            torch.testing.assert_close(head.attention[i], expected)


def test_W_gives_the_logits_up_to_a_number_per_query() -> None:
    W_Q, W_K, X, b_Q, b_K = tensors()
    head = Head(W_Q, W_K, X, biases=(b_Q, b_K))
    z = torch.cat((X, torch.ones(n, T, 1, dtype=X.dtype)), -1)
    assert head.W.shape == (d, d + 1)
    for i in range(n):
        by_W = z[i] @ head.W.mT @ X[i].mT
        off = by_W - head.logits(i)
        torch.testing.assert_close(off, off[:, :1].expand(T, T))


def test_the_bias_of_the_keys_cancels_and_scale_multiplies() -> None:
    W_Q, W_K, X, b_Q, b_K = tensors()
    with_bias, without = (Head(W_Q, W_K, X, biases=(b_Q, b)) for b in (b_K, None))
    torch.testing.assert_close(with_bias.attention, without.attention)
    torch.testing.assert_close(with_bias.W, without.W)
    torch.testing.assert_close(Head(W_Q, W_K, X, scale=1.0).W, W_K.mT @ W_Q)
    torch.testing.assert_close(Head(W_Q, W_K, X).W, W_K.mT @ W_Q / m**0.5)


def turns(r: int, factor: float = 1.0) -> Rotary:
    angle = torch.arange(T, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.1])[: r // 2]
    return Rotary(factor * angle.cos(), factor * angle.sin())


@pytest.mark.parametrize("factor", [1.0, 1.3])
@pytest.mark.parametrize("bias", [True, False])
def test_rotary_logits_are_those_of_W_at_their_distance(bias: bool, factor: float) -> None:
    W_Q, W_K, X, b_Q, b_K = tensors()
    biases = (b_Q, b_K) if bias else (None, None)
    head = Head(W_Q, W_K, X, biases=biases, rotary=turns(2, factor))
    z = torch.cat((X, torch.ones(n, T, 1, dtype=X.dtype)), -1) if bias else X
    logits = head.logits(0)
    for t in range(T):
        for s in range(T):
            torch.testing.assert_close(z[0, s] @ head.W_at(s - t) @ z[0, t], logits[t, s])
    with pytest.raises(am.InputError, match=r"needs W_at\(distance\)"):
        _ = head.W


def test_without_rotary_positions_W_is_one_for_all_distances() -> None:
    W_Q, W_K, X, *_ = tensors()
    head = Head(W_Q, W_K, X)
    torch.testing.assert_close(head.W_at(-3), head.W)


def test_sequences_alone_are_those_of_the_batch() -> None:
    W_Q, W_K, X, *_ = tensors()
    both = Head(W_Q, W_K, [X[0], X[1, :4]]).attention
    torch.testing.assert_close(Head(W_Q, W_K, X[0]).attention[0], both[0])
    torch.testing.assert_close(Head(W_Q, W_K, X[1, :4]).attention[0], both[1, :4, :4])
    assert not bool(both[1, 4:].any() or both[1, :, 4:].any())


def test_singular_values_are_those_of_W() -> None:
    W_Q, W_K, X, b_Q, b_K = tensors()
    head = Head(W_Q, W_K, X, biases=(b_Q, b_K), scale=-0.7)
    torch.testing.assert_close(head.singular_values(), torch.linalg.svdvals(head.W)[:m])


def test_dtype_is_kept_and_numpy_is_taken() -> None:
    W_Q, W_K, X, *_ = tensors(torch.float32)
    head = Head(W_Q.numpy(), W_K.numpy(), X.numpy())
    assert head.attention.dtype == head.W.dtype == torch.float32
    assert head.logits(0).dtype == torch.float64


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"W_Q": np.ones((3, 4))}, r"W_Q: got shape \(3, 4\); needs \(m, 5\)"),
        ({"W_K": np.ones((2, 5))}, r"W_K: got shape \(2, 5\); needs \(3, 5\), the shape of W_Q"),
        ({"hidden": np.ones(5)}, r"hidden: got shape \(5,\); needs tokens of shape"),
        ({"hidden": np.full((2, 6, 5), np.nan)}, "hidden: got nan at"),
        ({"mask": np.ones((2, 6))}, "mask: got torch.float64 entries; needs true or false"),
        ({"mask": np.ones((3, 6), dtype=bool)}, r"mask: got shape \(3, 6\); needs \(2, 6\)"),
        ({"biases": (np.ones(4), None)}, r"biases: got shape \(4,\); needs \(3,\)"),
        ({"layer": -1}, "layer: got -1; needs a whole number of at least 0"),
        ({"words": [["a"]]}, "words: got 1 lists of up to 1 words; needs 2 lists of at most 6"),
        ({"rotary": Rotary(torch.ones(2, 1), torch.ones(2, 1))}, "rotary: got turns of 2 posit"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, object], words: str) -> None:
    W_Q, W_K, X, *_ = tensors()
    given: dict[str, object] = {"W_Q": W_Q, "W_K": W_K, "hidden": X} | change
    with pytest.raises(am.InputError, match=words):
        Head(**given)  # type: ignore[arg-type]


def test_a_distance_beyond_the_texts_is_refused() -> None:
    W_Q, W_K, X, *_ = tensors()
    head = Head(W_Q, W_K, X, rotary=turns(2))
    with pytest.raises(am.InputError, match="distance: got 6 with texts of 6 tokens"):
        head.W_at(6)
    with pytest.raises(am.InputError, match=r"distance: got 0\.5; needs a whole number"):
        head.W_at(0.5)  # type: ignore[arg-type]
