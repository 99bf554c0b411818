"""Random choices with known priorities, and with noise: data whose answer is known."""

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.ragged import starts_of
from attnmargin.base.seeds import seed_of
from attnmargin.graphs.vocabulary import Vocabulary

# Weights of the tokens of a component: none is chosen less than half as often as another.
_WEIGHTS = (1.0, 2.0)
_LARGEST = 3


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlantedChoices(Summarised):
    """Sequences and what was chosen from them, with the components that made the choices.

    >>> planted_choices(500, noise=0.1)
    PlantedChoices
      sequences    500 over 13 tokens
      last tokens  8
      noise        65 choices
    """

    sequences: list[list[int]]
    labels: list[int]
    vocabulary: Vocabulary
    components: dict[int, list[list[int]]]  # per last token, from the highest priority down
    random: list[bool]  # which labels are noise

    def summary(self) -> dict[str, str]:
        """Return the sizes, by name."""
        return {
            "sequences": f"{len(self.sequences):,} over {len(self.vocabulary)} tokens",
            "last tokens": str(len(self.components)),
            "noise": f"{sum(self.random):,} choices",
        }

    @property
    def names(self) -> list[tuple[list[str], str]]:
        """Sequences and labels as words."""
        name = self.vocabulary.name
        pairs = zip(self.sequences, self.labels, strict=True)
        return [([name(k) for k in own], name(label)) for own, label in pairs]


def planted_choices(
    n: int = 3000,
    noise: float = 0.1,
    *,
    options: int = 5,
    situations: int = 8,
    most: int = 2,
    seed: int = 0,
) -> PlantedChoices:
    """Draw records of choices: some options, then the situation, in which one option is chosen.

    Every situation has its own order of components of one to three options. The choice falls on
    the highest component that is offered, inside it by fixed weights. With probability ``noise``
    it is a random token of the sequence instead.

    Args:
        n: number of sequences.
        options, situations: numbers of options and of last tokens.
        most: largest number of options of a sequence; the smallest is two.

    Example:
        >>> import attnmargin as am
        >>> data = am.graphs.planted_choices(3000, noise=0.1)
        >>> graphs = am.graphs.robust_graphs(data.sequences, data.labels, data.vocabulary)
        >>> sum(graphs[k].components[:-1] == own for k, own in data.components.items())
        8
    """
    check_whole(n=n, situations=situations)
    check_whole(2, options=options, most=most)
    if most > options:
        raise InputError("most", str(most), f"at most the {options} options")
    if not 0.0 <= noise <= 1.0:
        raise InputError("noise", f"{noise!r}", "a share from 0 to 1")
    rng = np.random.default_rng(seed_of("planted choices", base=seed))
    orders = [_components(options, rng) for _ in range(situations)]
    sequences, labels, wrong = [], [], []
    for _ in range(n):
        k = int(rng.integers(situations))
        offered = rng.permutation(options)[: int(rng.integers(2, most + 1))].tolist()
        sequences.append([*offered, options + k])
        wrong.append(bool(rng.random() < noise))
        own = sequences[-1]
        labels.append(int(rng.choice(own)) if wrong[-1] else _choice(orders[k], offered, rng))
    names = [f"option{i}" for i in range(options)] + [f"situation{k}" for k in range(situations)]
    components = {options + k: [sorted(part) for part in own] for k, own in enumerate(orders)}
    return PlantedChoices(sequences, labels, Vocabulary(names), components, wrong)


def _components(options: int, rng: np.random.Generator) -> list[dict[int, float]]:
    """Divide the options into components with weights, in random order."""
    order, sizes = rng.permutation(options), [0]
    while sum(sizes) < options:
        sizes.append(min(int(rng.integers(1, _LARGEST + 1)), options - sum(sizes)))
    start = starts_of(sizes[1:]).tolist()
    weights = rng.uniform(*_WEIGHTS, options)
    return [
        dict(zip(order[a:b].tolist(), weights[a:b].tolist(), strict=True))
        for a, b in pairwise(start)
    ]


def _choice(order: list[dict[int, float]], offered: list[int], rng: np.random.Generator) -> int:
    """Choose from the highest component that is offered."""
    part = next(own for own in order if not own.keys().isdisjoint(offered))
    there = [token for token in offered if token in part]
    weight = np.array([part[token] for token in there])
    return int(rng.choice(there, p=weight / weight.sum()))
