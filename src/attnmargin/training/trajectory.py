"""Trajectory: recorded weights and measures of training runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, final

import torch
from torch import Tensor

from attnmargin.arrays import as_tensor
from attnmargin.errors import InputError
from attnmargin.files import read_npz, write_npz

_CORE = ("steps", "loss", "probability", "selection", "log_gradient")
_LAST = "last_"
_WATCHED = "watched_"


@final
@dataclass(eq=False)
class Trajectory:
    """What was recorded of a run, at R moments and for a batch ``*B`` of trials."""

    steps: Tensor  # (R,): steps, or arc length, or radius
    loss: Tensor  # (R, *B): mean over sequences
    probability: Tensor  # (R, *B): largest softmax entry, mean over sequences
    selection: Tensor  # int (R, *B, n) or (R, *B, n, K): most likely token
    log_gradient: Tensor  # (R, *B): logarithm of ‖∇L‖_F in what is trained
    last: tuple[Tensor, ...]  # (W,), (K, Q) or (v, W) at the end: the ``init`` of a next run
    weights: Tensor | None = None  # (R, *B, d, d), if they were to be kept
    heads: Tensor | None = None  # (R, *B, d), where the head is trained
    watched: dict[str, Tensor] = field(default_factory=dict)  # (R, *B, …) by name
    notes: tuple[str, ...] = ()  # what the numbers cannot tell

    @property
    def W(self) -> Tensor:
        """Recorded weights, ``(R, *B, d, d)``."""
        if self.weights is None:
            raise InputError("W", "a run with keep_weights=False", "a run that keeps its weights")
        return self.weights

    @property
    def v(self) -> Tensor:
        """Recorded heads, ``(R, *B, d)``."""
        if self.heads is None:
            raise InputError("v", "a run with a fixed head", "parameter='vW'")
        return self.heads

    def save(self, path: str | Path) -> Path:
        """Write everything as ``.npz``."""
        arrays: dict[str, Any] = {
            name: value
            for name in (*_CORE, "weights", "heads")
            if (value := getattr(self, name)) is not None
        }
        arrays |= {f"{_LAST}{i}": part for i, part in enumerate(self.last)}
        arrays |= {f"{_WATCHED}{name}": values for name, values in self.watched.items()}
        return write_npz(path, arrays | {"notes": "\n".join(self.notes)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        arrays = read_npz(path, needs=(*_CORE, f"{_LAST}0"))
        notes = tuple(filter(None, str(arrays.pop("notes", "")).split("\n")))
        read = {name: as_tensor(name, value) for name, value in arrays.items()}
        own: dict[str, Any] = {name: read.get(name) for name in (*_CORE, "weights", "heads")}
        last = tuple(read[name] for name in sorted(read) if name.startswith(_LAST))
        watched = {
            name.removeprefix(_WATCHED): value
            for name, value in read.items()
            if name.startswith(_WATCHED)
        }
        return cls(**own, last=last, watched=watched, notes=notes)


@final
class Recorder:
    """Collects rows of a trajectory."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Tensor]] = {}

    def add(self, **values: Tensor) -> None:
        for name, value in values.items():
            self.rows.setdefault(name, []).append(value)

    def stack(self, name: str) -> Tensor | None:
        return torch.stack(self.rows[name]) if name in self.rows else None
