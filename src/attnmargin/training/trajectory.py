"""Trajectory: the recorded weights and measures of training runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, final

import torch
from torch import Tensor

from attnmargin.attention.softmax import Sequences, Slope
from attnmargin.base.arrays import as_tensor, floats, tiny
from attnmargin.base.display import Summarised, few_words, range_words, shape_words
from attnmargin.base.errors import InputError
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.training.weights import Weights

Watch = Mapping[str, Callable[[Tensor], Tensor]]

_CORE = ("steps", "loss", "probability", "selection", "log_gradient")
_OPTIONAL = ("weights", "heads", "inside")
_LAST = "last_"
_WATCHED = "watched_"


@final
@dataclass(eq=False, repr=False)
class Trajectory(Summarised):
    """Records of a run at R moments, for a batch ``*B`` of trials."""

    steps: Tensor  # (R,): steps, or arc length, or radius
    loss: Tensor  # (R, *B): mean over sequences
    probability: Tensor  # (R, *B): largest softmax entry, mean over sequences
    selection: Tensor  # int (R, *B, n) or (R, *B, n, K): most likely token
    log_gradient: Tensor  # (R, *B): logarithm of ‖∇L‖_F in the trained parameters
    last: tuple[Tensor, ...]  # (W,), (K, Q) or (v, W) at the end; ``init`` to continue the run
    weights: Tensor | None = None  # (R, *B, d, d), with keep_weights
    heads: Tensor | None = None  # (R, *B, d), if the head is trained
    inside: Tensor | None = None  # bool (R, *B), of paths: whether the minimum is off the sphere
    watched: dict[str, Tensor] = field(default_factory=dict)  # (R, *B, …) by name
    notes: tuple[str, ...] = ()  # caveats that the numbers do not show

    def summary(self) -> dict[str, str]:
        """Return length, batch and final values of the run, by name."""
        batch = self.loss.shape[1:]
        chosen = few_words(self.selection[-1].tolist()) if not batch else "see .selection[-1]"
        parts = " and ".join(str(tuple(part.shape[len(batch) :])) for part in self.last)
        return {
            "steps": f"{float(self.steps[-1]):g}, {len(self.steps)} records",
            "batch": shape_words(batch),
            "trained": parts,
            "loss": range_words(self.loss[-1]),
            "largest softmax entry": range_words(self.probability[-1]),
            "selection": chosen,
            **({} if self.inside is None else {"inside of the ball": self._inside_words()}),
            **({"notes": "; ".join(self.notes)} if self.notes else {}),
        }

    def _inside_words(self) -> str:
        assert self.inside is not None
        return f"{int(self.inside.sum())} of {self.inside.numel()} minima"

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
        """Write everything to an ``.npz`` file."""
        arrays: dict[str, Any] = {
            name: value
            for name in (*_CORE, *_OPTIONAL)
            if (value := getattr(self, name)) is not None
        }
        arrays |= {f"{_LAST}{i}": part for i, part in enumerate(self.last)}
        arrays |= {f"{_WATCHED}{name}": values for name, values in self.watched.items()}
        return write_npz(path, arrays | {"notes": "\n".join(self.notes)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote."""
        arrays = read_npz(path, needs=(*_CORE, f"{_LAST}0"))
        notes = tuple(filter(None, str(arrays.pop("notes", "")).split("\n")))
        read = {name: as_tensor(name, value) for name, value in arrays.items()}
        own: dict[str, Any] = {name: read.get(name) for name in (*_CORE, *_OPTIONAL)}
        last = tuple(read[name] for name in sorted(read) if name.startswith(_LAST))
        watched = {
            name.removeprefix(_WATCHED): value
            for name, value in read.items()
            if name.startswith(_WATCHED)
        }
        return cls(**own, last=last, watched=watched, notes=notes)


def _log(square: Tensor, log_scale: Tensor) -> Tensor:
    """Compute the logarithm of a norm from its square over ``e^{2 log_scale}``."""
    return 0.5 * square.clamp_min(tiny(square)).log() + log_scale


@final
class Recorder:
    """Collector of the records of a trajectory."""

    def __init__(self, flat: Sequences, watch: Watch | None = None, keep_weights: bool = True):
        if watch is not None and not isinstance(watch, Mapping):
            raise InputError("watch", f"a {type(watch).__name__}", "names with functions of W")
        self.flat, self.watch, self.keep_weights = flat, watch or {}, keep_weights
        self.rows: dict[str, list[Tensor]] = {}
        self.watched: dict[str, list[Tensor]] = {}

    def _add(self, **values: Tensor) -> None:
        for name, value in values.items():
            self.rows.setdefault(name, []).append(value)

    def add(
        self,
        moment: float,
        weights: Weights,
        slope: Slope,
        v: Tensor | None = None,
        of_head: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        """Record one moment; v is ``(B, d, 1)``, ``of_head`` its negative gradient and scale."""
        batch = self.flat.batch
        log_gradient = _log(weights.square(slope), slope.log_scale)
        if of_head is not None:
            square = of_head[0].square().sum((-2, -1), keepdim=True)
            both = torch.logaddexp(2.0 * log_gradient, 2.0 * _log(square, of_head[1]))
            log_gradient = 0.5 * both
        kind = torch.int64 if isinstance(moment, int) else torch.float64
        self._add(
            steps=torch.tensor(moment, dtype=kind),
            loss=slope.loss.reshape(batch),
            probability=slope.s.amax(-1).mean(-1).reshape(batch),
            selection=self.flat.shaped(slope.top)[..., 0],
            log_gradient=log_gradient.reshape(batch),
        )
        if v is not None:
            self._add(heads=v.reshape(*batch, v.shape[1]).clone())
        if self.keep_weights or self.watch:
            W = weights.matrix()
            W = W.reshape(*batch, *W.shape[-2:])
            if self.keep_weights:
                self._add(weights=W.clone())
            for name, measure in self.watch.items():
                value = floats(f"watch[{name!r}]", measure(W.clone()))
                self.watched.setdefault(name, []).append(value)

    def trajectory(self, parts: tuple[Tensor, ...], notes: tuple[str, ...] = ()) -> Trajectory:
        """Build the trajectory from all records and the final parameters."""
        batch = self.flat.batch
        last = tuple(part.reshape(*batch, *part.shape[1:]).clone() for part in parts)
        rows: dict[str, Any] = {name: torch.stack(values) for name, values in self.rows.items()}
        watched = {name: torch.stack(values) for name, values in self.watched.items()}
        return Trajectory(**rows, last=last, watched=watched, notes=notes)
