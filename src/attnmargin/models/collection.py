"""Heads: the heads of a model that were read, by layer and place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.models.head import Head


@final
@dataclass(frozen=True, eq=False, repr=False)
class Heads(Summarised):
    """Heads of one model on the same texts: ``heads[7]``, or ``heads[layer, head]``."""

    heads: tuple[Head, ...]
    words: list[list[str]]  # the tokens of each text
    error: float  # largest difference between their attention and the model's

    def summary(self) -> dict[str, str]:
        """Return the numbers of heads and texts, by name."""
        return {
            "heads": f"{len(self.heads)} in {counted(len(self.layers), 'layer')}",
            "texts": f"{len(self.words)}, {counted(sum(map(len, self.words)), 'token')}",
            "reconstruction": f"{self.error:.2g} from the model's attention at most",
        }

    @property
    def layers(self) -> list[int]:
        """The layers that were read."""
        return sorted({head.layer for head in self.heads})

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __getitem__(self, place: int | tuple[int, int]) -> Head:
        """Return a head by its number among those read, or by layer and head."""
        if isinstance(place, int):
            return self.heads[place]
        for head in self.heads:
            if (head.layer, head.index) == place:
                return head
        raise InputError("place", f"{place}", "a layer and a head that were read")

    def of_layer(self, layer: int) -> list[Head]:
        """Return the heads of one layer."""
        return [head for head in self.heads if head.layer == layer]
