"""read_heads: the heads of a transformer on given texts, checked against its own attention."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.models.collection import Heads
from attnmargin.models.families import NAMES, Projections, reader_of
from attnmargin.models.head import Head
from attnmargin.models.loading import load_model
from attnmargin.models.rotary import Rotary
from attnmargin.models.texts import Texts, token_rows

# Largest difference between the attention of a head and the model's own.
EXACT = 1e-6
Places = Sequence[int] | int | None


@final
@dataclass(eq=False)
class _Layer:
    """What one call of an attention module read and gave, text by text."""

    module: Any
    hidden: list[Tensor] = field(default_factory=list)  # (T_i, d) each
    own: list[Tensor] = field(default_factory=list)  # (H, T_i, T_i) each
    seen: list[Tensor] = field(default_factory=list)  # (T_i, T_i) each
    turns: tuple[Tensor, Tensor] | None = None  # the longest tables


def read_heads(
    model: Any,
    texts: Texts,
    tokenizer: Any = None,
    layers: Places = None,
    heads: Places = None,
    *,
    length: int | None = None,
) -> Heads:
    """Read attention heads of a transformer on some texts, by hooks.

    Every head gets the hidden states that its layer read, its W_Q, W_K and biases, and what its
    queries see. Its attention is then computed from these alone and compared with the model's.

    Args:
        model: a transformers model (BERT, DistilBERT, RoBERTa, ALBERT, GPT-2, Llama, Qwen2,
            GPT-NeoX) in float32 or float64; or what :func:`load_model` takes: a folder, or
            "minilm", which brings its tokenizer.
        texts: strings, or lists of token ids.
        tokenizer: of the model; not needed for token ids.
        layers, heads: which ones, counted from 0; by default all.
        length: cut texts to so many tokens; by default a text that is too long is an error.

    Returns:
        :class:`Heads`, ordered by layer, then head. ``error`` is the largest difference found, in
        the model's dtype; where logits are so large that float32 itself is off by more than 1e-6,
        in float64.

    Raises:
        InputError: if a model has no attention weights or is of another family, if a text is empty
            or too long, or if an attention differs from the model's by more than 1e-6.
    """
    if isinstance(model, str | Path):
        loaded = load_model(model)
        model = loaded.model
        tokenizer = loaded.tokenizer if tokenizer is None else tokenizer
    _check_model(model)
    ids, words = token_rows(model, texts, tokenizer, length)
    found = _read(model, ids, words, (layers, heads))
    if found.error > EXACT and next(model.parameters()).dtype == torch.float32:
        found = replace(found, error=_in_float64(model, ids, words, found))
    if not found.error <= EXACT:
        got = f"attention that differs by {found.error:.2g} from what its weights say"
        raise InputError("model", got, f"a difference of at most {EXACT:g}")
    return found


def _in_float64(model: Any, ids: list[list[int]], words: list[list[str]], found: Heads) -> float:
    """Compare once more in float64: with large logits, float32 itself is off by more than 1e-6."""
    places = (found.layers, sorted({head.index for head in found}))
    return _read(deepcopy(model).double(), ids, words, places).error


def _read(
    model: Any, ids: list[list[int]], words: list[list[str]], chosen: tuple[Places, Places]
) -> Heads:
    """Read heads, and compare their attention with the model's."""
    calls = _run(model, _attention_modules(model), ids)
    found, worst = [], 0.0
    for layer in _places("layers", chosen[0], len(calls)):
        own, error = _heads(calls[layer], layer, chosen[1], words)
        found += own
        worst = max(worst, error)
    return Heads(tuple(found), words, worst)


def _check_model(model: Any) -> None:
    """Raise InputError unless heads can be read from a model in float32 or float64."""
    named = f"a {type(model).__name__}"
    if not isinstance(model, torch.nn.Module):
        raise InputError("model", named, "a transformers model, a folder, or minilm")
    if not _attention_modules(model):
        raise InputError("model", f"{named} without attention weights that are known", NAMES)
    dtype = next(model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64):
        raise InputError("model", f"{named} in {dtype}", "float32 or float64: model.float()")


def _attention_modules(model: Any) -> list[Any]:
    return [module for module in model.modules() if reader_of(module) is not None]


def _run(model: Any, modules: list[Any], ids: list[list[int]]) -> list[_Layer]:
    """Run the model on every text; return the calls of its attention modules in their order.

    A module that several layers share is called once per layer.
    """
    calls: list[_Layer] = []
    device = next(model.parameters()).device
    body = getattr(model, "base_model", model)
    with ExitStack() as stack:
        stack.enter_context(_eager(model))
        stack.enter_context(torch.no_grad())
        place = _Place()
        for module in modules:
            hook = _recorder(calls, place)
            handle = module.register_forward_hook(hook, with_kwargs=True)
            stack.callback(handle.remove)
        for row in ids:
            place.layer = 0
            try:
                body(input_ids=torch.tensor([row], device=device))
            except Exception as error:  # whatever the settings of a model lead to
                got = f"a {type(model).__name__} that fails on these texts ({error!s:.160})"
                raise InputError("model", got, "a model that runs") from error
    if not calls:
        raise InputError("model", f"a {type(model).__name__} that called no attention", NAMES)
    return calls


@final
@dataclass
class _Place:
    """Which layer of the current text is next."""

    layer: int = 0


def _recorder(calls: list[_Layer], place: _Place) -> Any:
    def record(module: Any, args: tuple[Any, ...], named: dict[str, Any], out: Any) -> None:
        if place.layer == len(calls):
            calls.append(_Layer(module))
        own = calls[place.layer]
        place.layer += 1
        hidden = args[0] if args else named["hidden_states"]
        shares = out[1] if isinstance(out, tuple) and len(out) > 1 else None
        if shares is None:
            got = f"a {type(module).__name__} that returns no attention weights"
            raise InputError("model", got, "a model that runs with attn_implementation='eager'")
        own.hidden.append(hidden[0])
        own.own.append(shares[0])
        own.seen.append(_seen(args, named, hidden.shape[1]))
        turns = named.get("position_embeddings")
        if turns is not None and (own.turns is None or turns[0].shape[1] > len(own.turns[0])):
            half = turns[0].shape[-1] // 2
            own.turns = tuple(table[0, :, :half] for table in turns)

    return record


def _seen(args: tuple[Any, ...], named: dict[str, Any], T: int) -> Tensor:
    """Read what each query sees from the mask that the module was given."""
    masks = [x for x in (*args[1:], named.get("attention_mask")) if torch.is_tensor(x)]
    shaped = [x for x in masks if x.ndim == 4 and x.shape[-2:] == (T, T)]
    if not shaped:
        return torch.ones(T, T, dtype=torch.bool)
    mask = shaped[0][0, 0]
    return mask if mask.dtype == torch.bool else mask > 0.5 * torch.finfo(mask.dtype).min


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Make the model compute attention weights, without dropout, for a while."""
    training = model.training
    configured = getattr(model, "set_attn_implementation", None)
    before = getattr(model.config, "_attn_implementation", None)
    model.eval()
    if configured is not None and before != "eager":
        configured("eager")
    try:
        yield
    finally:
        if configured is not None and before not in (None, "eager"):
            configured(before)
        model.train(training)


def _heads(
    call: _Layer, layer: int, heads: Places, words: list[list[str]]
) -> tuple[list[Head], float]:
    """Build the heads of a layer, and compare their attention with the model's."""
    weights = _weights(call.module)
    hidden = torch.nn.utils.rnn.pad_sequence(call.hidden, batch_first=True)
    mask, causal = _mask(call.seen, hidden.shape[1])
    mask = None if mask is None else mask.to(hidden.device)
    rotary = None if call.turns is None else Rotary(*call.turns)
    found, worst = [], 0.0
    for index in _places("heads", heads, len(weights.W_Q)):
        head = Head(
            weights.W_Q[index], weights.W_K[index], hidden, mask,
            biases=(_at(weights.b_Q, index), _at(weights.b_K, index)), causal=causal,
            scale=weights.scale, rotary=rotary, layer=layer, index=index, words=words,
        )  # fmt: skip
        worst = max(worst, _difference(head, call.own))
        found.append(head)
    return found, worst


def _weights(module: Any) -> Projections:
    reader = reader_of(module)
    if reader is None:
        raise InputError("model", f"a {type(module).__name__}", NAMES)
    return reader(module)


def _at(biases: Tensor | None, index: int) -> Tensor | None:
    return None if biases is None else biases[index]


def _mask(seen: list[Tensor], T: int) -> tuple[Tensor | None, bool]:
    """Summarise what queries see: a mask ``(n, T)`` or ``(n, T, T)`` or none, and causality."""
    full = all(bool(own.all()) for own in seen)
    causal = not full and all(torch.equal(own, own.new_ones(own.shape).tril()) for own in seen)
    lengths = torch.tensor([len(own) for own in seen])
    if full or causal:
        inside = torch.arange(T) < lengths[:, None]
        return (None if bool(inside.all()) else inside), causal
    mask = torch.zeros(len(seen), T, T, dtype=torch.bool)
    for i, own in enumerate(seen):
        mask[i, : len(own), : len(own)] = own.cpu()
    return mask, False


def _difference(head: Head, own: list[Tensor]) -> float:
    """Find the largest difference to the model's attention, text by text as the model ran."""
    worst = 0.0
    for i, shares in enumerate(own):
        T = shares.shape[-1]
        worst = max(worst, float((head.attention_of(i)[:T, :T] - shares[head.index]).abs().max()))
    return worst if math.isfinite(worst) else math.inf


def _places(name: str, chosen: Places, count: int) -> list[int]:
    """Check the numbers of layers or heads; None stands for all."""
    if chosen is None:
        return list(range(count))
    listed = [chosen] if isinstance(chosen, int) else list(chosen)
    for place in listed:
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count:
            words = counted(count, name.removesuffix("s"))
            raise InputError(name, repr(place), f"0 to {count - 1} for a model of {words}")
    return listed
