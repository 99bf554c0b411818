"""Draws of every generator, as hashes of their bits."""

import hashlib
from typing import Any

import numpy as np
import torch

import attnmargin as am
from attnmargin.base.seeds import seed_of
from attnmargin.models.head import Head
from attnmargin.models.null import random_head
from attnmargin.text.classifier.transformer import TextClassifier
from attnmargin.text.corpus import balanced, split_corpus
from tests.campaigns.everywhere.place import Answers, Place, plain
from tests.texts import pieces, reviews, shape


def draws(place: Place) -> Answers:
    """Return the hash of every draw, by the name of its generator."""
    del place  # generators draw on the CPU, whole batches at once
    found = {**_instances(), **_tokens(), **_starts(), **_texts()}
    return {f"draws/{name}": np.array(_hash(*parts)) for name, parts in found.items()}


def _hash(*parts: Any) -> str:
    """Hash types, shapes and bits."""
    own = hashlib.blake2b(digest_size=12)
    for part in map(plain, parts):
        own.update(f"{part.dtype.str}{part.shape}".encode())
        own.update(np.ascontiguousarray(part).tobytes())
    return own.hexdigest()


def _instances() -> dict[str, tuple[Any, ...]]:
    kinds: dict[str, dict[str, Any]] = {
        "sphere": {}, "gaussian": {"distribution": "gaussian"},
        "self-attention": {"self_attention": True}, "gap": {"min_gap": 0.1},
        "one": {"trials": None}, "seed 7": {"seed": 7},
    }  # fmt: skip
    found: dict[str, tuple[Any, ...]] = {}
    for n, T, d in ((6, 8, 10), (3, 2, 1), (1, 40, 64)):
        for name, own in kinds.items():
            data = am.random_data(n, T, d, **{"trials": 5, "name": "everywhere", **own})
            found[f"random_data {n} {T} {d} {name}"] = data.X, data.z, data.y, data.v
    return found


def _tokens() -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {
        f"random_next_tokens {acyclic} {labels}": am.graphs.random_next_tokens(
            6, 8, 6, 4, trials=5, name="everywhere", acyclic=acyclic, labels=labels
        )
        for acyclic, labels in ((False, "sequence"), (True, "sequence"), (False, "vocabulary"))
    }
    important = am.embeddings.important_tokens(8, 5, seed=3)
    levels, difference = am.embeddings.level_tokens(12, T=16, seed=3)
    model = am.embeddings.random_embeddings(important, 16, seed=3)
    return found | {
        "important_tokens": (important.ids, important.y),
        "level_tokens": (levels.ids, levels.y, difference),
        "random_embeddings": (model.E, model.p, model.v),
    }


def _starts() -> dict[str, tuple[Any, ...]]:
    data = am.random_data(3, 4, 6, trials=4, name="everywhere")
    factors = am.train(data, "KQ", steps=0, width=3, seed=5).last
    draw = torch.Generator().manual_seed(seed_of("everywhere"))
    W_Q, W_K, hidden = (torch.randn(*own, generator=draw) for own in ((3, 8), (3, 8), (4, 9, 8)))
    head = Head(W_Q, W_K, hidden)
    return {
        "K and Q": tuple(factors),
        "random head": (random_head(head, 0, seed=2).W_Q, random_head(head, 1, seed=2).W_K),
    }


def _texts() -> dict[str, tuple[Any, ...]]:
    own, corpus = pieces(), reviews()
    with torch.random.fork_rng():
        torch.manual_seed(seed_of("text model", base=0))  # as a run with seed 0 begins
        model = TextClassifier(shape(own), own.vocabulary.index("[PAD]"))
    first, second = split_corpus(corpus, 0.25, 4)
    return {
        "weights of a classifier": tuple(model.state_dict().values()),
        "split of a corpus": (first.labels, second.labels, np.array(first.texts)),
        "balanced corpus": (np.array(balanced(corpus, 4).texts),),
    }
