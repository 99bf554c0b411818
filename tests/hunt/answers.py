"""One case of the hunt, and how an answer of the library is read: a side, or undecided."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

import attnmargin as am

Arrays = dict[str, NDArray[Any]]

# A row whose exact relative slack is positive but below this may be called tight: rounding alone
# makes such slacks.
DOUBT = 1e-12
# Scores that differ by less than this share of their terms may be called equal.
SCORE_DOUBT = 1e-12
# Words for an answer that takes no side.
_OPEN = {"undecided", "open", "inaccurate", "not decidable here", "unknown", "doubtful", "none"}


class Answer(StrEnum):
    """How an answer compares with the truth."""

    RIGHT = "right"
    UNDECIDED = "undecided"
    WRONG = "wrong"


@dataclass(frozen=True)
class Case:
    """One question to the library, and how its answer compares."""

    answer: Answer
    family: str
    adversarial: bool
    about: str  # what was asked, and what was found instead
    arrays: Arrays = field(default_factory=dict, repr=False)
    tested: bool = True  # whether the oracle knew the answer


def claim(value: Any) -> bool | None:
    """Read a yes or no of the library; None if it takes no side."""
    value = value.item() if isinstance(value, Tensor | np.generic | np.ndarray) else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        word = str(value).lower()
        return None if word in _OPEN else word in ("holds", "optimal", "true", "yes", "local")
    return bool(value)


def judged(said: bool | None, truth: bool | None) -> Answer:
    """Compare a claim with the truth; where the truth is within rounding, either side will do."""
    if said is None:
        return Answer.UNDECIDED
    return Answer.RIGHT if truth is None or said == truth else Answer.WRONG


def worst(answers: list[Answer]) -> Answer:
    """Return wrong if one is, else undecided if one is."""
    for answer in (Answer.WRONG, Answer.UNDECIDED):
        if answer in answers:
            return answer
    return Answer.RIGHT


def open_rows(solution: am.Solution) -> NDArray[np.bool_]:
    """Mark the rows of which the library does not say whether they are tight, ``(*B, M)``."""
    for name in ("undecided", "support_undecided", "doubtful"):
        found = getattr(solution, name, None)
        if isinstance(found, Tensor) and found.shape == solution.dual.shape:
            return np.asarray(found.numpy(), dtype=bool)
    return np.zeros(tuple(solution.dual.shape), dtype=bool)


def support_claims(solution: am.Solution) -> NDArray[Any]:
    """Return True, False or None for every row, ``(*B, M)``."""
    said = np.empty(tuple(solution.support.shape), dtype=object)
    said[...] = solution.support.numpy()
    said[open_rows(solution)] = None
    return said


def local_claims(found: am.selections.Locality) -> list[bool | None]:
    """Return True, False or None for every selection of a batch ``(S,)``."""
    sides = [claim(x) for x in found.local]
    return [None if claim(u) else side for side, u in zip(sides, found.undecided, strict=True)]


def tight_truth(slack: Any) -> bool | None:
    """Tell whether an exact relative slack is zero; None if it is small."""
    if slack == 0:
        return True
    return None if 0 < slack < DOUBT else False
