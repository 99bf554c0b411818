"""Where the model families keep the weights of their heads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

NAMES = "BERT, DistilBERT, RoBERTa, ALBERT, GPT-2, Llama, Qwen2 or GPT-NeoX"


@final
@dataclass(frozen=True, eq=False)
class Projections:
    """Weights of all heads of a layer: ``W_Q, W_K (H, m, d)``, biases ``(H, m)`` or None."""

    W_Q: Tensor
    W_K: Tensor
    b_Q: Tensor | None
    b_K: Tensor | None
    scale: float


def _cut(weight: Tensor, bias: Tensor | None, m: int) -> tuple[Tensor, Tensor | None]:
    """Cut ``(H m, d)`` into heads."""
    cut = None if bias is None else bias.detach().unflatten(0, (-1, m))
    return weight.detach().unflatten(0, (-1, m)), cut


def _separate(queries: Any, keys: Any, m: int, scale: float) -> Projections:
    """Read two linear maps; with grouped queries, several heads share the keys of one."""
    W_Q, b_Q = _cut(queries.weight, queries.bias, m)
    W_K, b_K = _cut(keys.weight, keys.bias, m)
    group = len(W_Q) // len(W_K)
    W_K = W_K.repeat_interleave(group, 0)
    b_K = None if b_K is None else b_K.repeat_interleave(group, 0)
    return Projections(W_Q, W_K, b_Q, b_K, scale)


def _bert(own: Any) -> Projections:
    return _separate(own.query, own.key, own.attention_head_size, own.scaling)


def _distilbert(own: Any) -> Projections:
    return _separate(own.q_lin, own.k_lin, own.attention_head_size, own.scaling)


def _llama(own: Any) -> Projections:
    return _separate(own.q_proj, own.k_proj, own.head_dim, own.scaling)


def _gpt2(own: Any) -> Projections:
    """Read thirds of one map, whose weight is transposed: ``(d, 3 H m)``."""
    d, m = own.embed_dim, own.head_dim
    weight, bias = own.c_attn.weight.mT, own.c_attn.bias
    W_Q, b_Q = _cut(weight[:d], bias[:d], m)
    W_K, b_K = _cut(weight[d : 2 * d], bias[d : 2 * d], m)
    return Projections(W_Q, W_K, b_Q, b_K, own.scaling)


def _gpt_neox(own: Any) -> Projections:
    """Read one map, in which query, key and value of a head follow each other."""
    m, inner = own.head_size, own.query_key_value
    weight, bias = _cut(inner.weight, inner.bias, 3 * m)
    b_Q = b_K = None
    if bias is not None:
        b_Q, b_K = bias[:, :m], bias[:, m : 2 * m]
    return Projections(weight[:, :m], weight[:, m : 2 * m], b_Q, b_K, own.scaling)


# Readers by the class of the attention module.
FAMILIES: dict[str, Callable[[Any], Projections]] = {
    "AlbertAttention": _bert,
    "BertSelfAttention": _bert,
    "DistilBertSelfAttention": _distilbert,
    "GPT2Attention": _gpt2,
    "GPTNeoXAttention": _gpt_neox,
    "LlamaAttention": _llama,
    "Qwen2Attention": _llama,
    "RobertaSelfAttention": _bert,
}


def reader_of(module: Any) -> Callable[[Any], Projections] | None:
    """Find the reader of an attention module; None for any other module."""
    return FAMILIES.get(type(module).__name__)
