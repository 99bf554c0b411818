"""Check: whether one assumption or theorem holds for given data, with the numbers."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.display import tally_words


class Outcome(StrEnum):
    """Whether a statement holds for given data."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDABLE = "not decidable here"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """One assumption or theorem of a paper; ``outcome`` and ``numbers`` have the batch shape.

    For a theorem, "holds" means that its hypotheses hold for these data, so that it applies.
    """

    paper: str  # its letter, "A" to "J"
    name: str  # as in the paper
    meaning: str  # in plain language
    outcome: Any  # an Outcome, or a numpy array of them
    numbers: dict[str, Tensor] = field(default_factory=dict)
    note: str = ""  # why, or what is missing

    @property
    def label(self) -> str:
        """Paper and name."""
        return f"{self.paper}: {self.name}"

    def __getitem__(self, index: Any) -> "Check":
        """Return members of the batch."""
        index = index.cpu().numpy() if isinstance(index, Tensor) else index
        numbers = {
            name: x[index] if x.ndim else x  # numbers of the shapes alone have no batch
            for name, x in self.numbers.items()
        }
        outcome = self.outcome[index] if isinstance(self.outcome, np.ndarray) else self.outcome
        return replace(self, outcome=outcome, numbers=numbers)

    def __repr__(self) -> str:
        return f"<Check {self.label}: {tally_words(self.outcome)}>"

    def __str__(self) -> str:
        numbers = ", ".join(
            f"{name} {float(x):.6g}" for name, x in self.numbers.items() if x.numel() == 1
        )
        return f"{self.label}: {self.outcome}" + (f" ({numbers})" if numbers else "")


_OUTCOMES = np.array([Outcome.FAILS, Outcome.HOLDS, Outcome.UNDECIDABLE], dtype=object)


def outcome(holds: Tensor, known: Tensor | None = None) -> Any:
    """Turn bool tensors ``(*B,)`` into an :class:`Outcome`, or an array of them."""
    code = holds.to(torch.int64)
    if known is not None:
        code = code.where(known, 2)
    answer: NDArray[Any] = _OUTCOMES[code.cpu().numpy()]
    return answer


def holds(check: Check) -> Tensor:
    """Return where a check holds, bool ``(*B,)``."""
    return torch.as_tensor(np.asarray(check.outcome == Outcome.HOLDS))


def fails(answer: Any) -> Tensor:
    """Return where an outcome is "fails", bool ``(*B,)``."""
    return torch.as_tensor(np.asarray(answer == Outcome.FAILS))


def decided(check: Check) -> Tensor:
    """Return where a check holds or fails, bool ``(*B,)``."""
    return torch.as_tensor(np.asarray(check.outcome != Outcome.UNDECIDABLE))


def number(value: float) -> Tensor:
    """Repeat a number for every member of the batch."""
    return torch.tensor(float(value), dtype=torch.float64)
