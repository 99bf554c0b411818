"""
Watch the heads of a small GPT while it trains
==============================================

Do its heads turn to their max-margin direction? The text is a small language with agreement: "the
cats near the dog run ." ends in the verb that agrees with the first noun. Needs the extras
``models`` and ``plot``; ``watch_heads.py heads.png`` saves the picture.
"""

import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import attnmargin as am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOUNS = ("cat", "dog", "bird", "child", "king", "friend")
VERBS = ("run", "sleep", "sing", "wait")
PLACES = ("near", "behind", "with")


def sentences() -> list[list[str]]:
    """All sentences with a subject, another noun of either number, and a verb that agrees."""
    found = []
    for noun, place, other, verb in product(NOUNS, PLACES, NOUNS, VERBS):
        for many, others in product((False, True), repeat=2):
            subject, rest = noun + "s" * many, other + "s" * others
            ending = verb if many else verb + "s"
            found.append(["the", subject, place, "the", rest, ending, "."])
    return found


def train(steps: int, every: int) -> tuple[am.models.Watch, am.models.Heads]:
    """Train on next tokens; watch all heads on sixteen sentences."""
    rows = sentences()
    vocabulary = sorted({word for row in rows for word in row})
    ids = torch.tensor([[vocabulary.index(word) for word in row] for row in rows])
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_embd=64, n_layer=2, n_head=4, n_positions=8,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    shown = ids[:: len(ids) // 16].tolist()
    watch = am.models.Watch(
        lambda: am.models.read_heads(model, shown),
        every=every,
        settings=am.models.Settings(queries=16, draws=4),
    )
    draw = torch.Generator().manual_seed(1)
    for step in range(steps + 1):
        watch(step)
        batch = ids[torch.randint(len(ids), (64,), generator=draw)]
        logits = model(input_ids=batch).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.mT, batch[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return watch, am.models.read_heads(model, shown)


def main() -> "Figure":
    torch.set_num_threads(1)  # the model is small
    watch, heads = train(steps=1000, every=100)
    for name in ("efficiency", "cosine"):
        own, null = watch.of(name), watch.of(name, null=True)
        above = int((own[-1] > null[-1]).sum())
        first, last, random = (np.median(row) for row in (own[0], own[-1], null[-1]))
        print(
            f"{name}: median {first:.3f} at the start, {last:.3f} at the end; random heads "
            f"{random:.3f}; {above} of {own.shape[1]} heads above theirs"
        )
    subject = [(i, 4, 1) for i in range(16)]  # the last word before the verb asks for the subject
    print(am.models.wanted_selection(list(heads), subject))
    figure = am.plot.watch(watch)
    if len(sys.argv) > 1:
        figure.savefig(Path(sys.argv[1]), dpi=110)
    return figure


if __name__ == "__main__":
    figure = main()
