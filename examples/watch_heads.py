"""Watch the heads of a small GPT while it trains: do they turn to their max-margin direction?

The text is a small language with agreement: "the cats near the dog run ." ends in the verb that
agrees with the first noun. Needs transformers and matplotlib (extras models and plot). Run it:

    python examples/watch_heads.py heads.png
"""

import sys
from itertools import product
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import attnmargin as am

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
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 8}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(vocabulary), **sizes, **ends))
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
        loss = model(input_ids=batch, labels=batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return watch, am.models.read_heads(model, shown)


def main() -> None:
    watch, heads = train(steps=1500, every=150)
    for name in ("efficiency", "cosine"):
        own, null = watch.of(name), watch.of(name, null=True)
        above = int((own[-1] > null[-1]).sum())
        print(
            f"{name}: median {float(sorted(own[0])[4]):.3f} at the start, "
            f"{float(sorted(own[-1])[4]):.3f} at the end; random heads "
            f"{float(sorted(null[-1])[4]):.3f}; {above} of {own.shape[1]} heads above theirs"
        )
    subject = [(i, 4, 1) for i in range(16)]  # the last word before the verb asks for the subject
    print(am.models.wanted_selection(list(heads), subject))
    if len(sys.argv) > 1:
        am.plot.watch(watch).savefig(Path(sys.argv[1]), dpi=110)


if __name__ == "__main__":
    main()
