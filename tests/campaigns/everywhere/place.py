"""Where and how a battery of questions is answered: device, batch size, size of the battery."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Answers = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Place:
    """The setting in which one battery is answered.

    ``chunk`` members of a batch are asked at a time, all of them with None. A ``small`` battery has
    fewer members, and no large problem.
    """

    device: str = "cpu"
    chunk: int | None = None
    small: bool = False

    @property
    def trials(self) -> int:
        """Members of a batch."""
        return 9 if self.small else 70

    def asked(self, function: Callable[..., Mapping[str, Any]], *batched: Any) -> Answers:
        """Ask in chunks, and join the answers along their first axis."""
        parts = [
            {name: plain(value) for name, value in function(*own).items()}
            for own in self._chunks(batched)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _chunks(self, batched: tuple[Any, ...]) -> Iterator[list[Any]]:
        count = len(batched[0]) if torch.is_tensor(batched[0]) else batched[0].batch_shape[0]
        step = self.chunk or count
        for first in range(0, count, step):
            yield [part[first : first + step].to(self.device) for part in batched]


def plain(value: Any) -> NDArray[Any]:
    """Convert an answer to an array on the CPU; words become strings."""
    array = np.asarray(value.detach().cpu() if torch.is_tensor(value) else value)
    return array.astype(str) if array.dtype.kind == "O" else array


def named(prefix: str, answers: Mapping[str, Any]) -> Answers:
    """Put a prefix before the names of answers."""
    return {f"{prefix}/{name}": plain(value) for name, value in answers.items()}
