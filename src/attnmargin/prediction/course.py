"""The run that a prediction is about: where it starts, its steps, and how long it is followed."""

import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.softmax import sequences
from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.base.words import counted
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.implied import (
    METHODS,
    Implication,
    implication,
    implied_method,
    implied_norm,
)
from attnmargin.margin.norms import Norm, as_norm, mirror, power_norm
from attnmargin.training import Trajectory, train
from attnmargin.training.methods import Adam, Method, Steepest, as_method
from attnmargin.training.start import movable_start

# A start of the user's own, in words, and the usual one of K and Q.
GIVEN, _SMALL = "from the given start", "from small random K and Q"


@final
@dataclass(frozen=True, eq=False)
class Course:
    """How weights are trained."""

    parameter: str  # "W" or "KQ"
    p: float
    loss: str | Loss
    lr: Tensor  # (*B,), float64: lengths of steps, or rates of plain descent
    normalize: bool
    steps: int  # how many at most
    init: tuple[Tensor, ...] | None  # (W,) or (K, Q), (*B, …) each; None: zero W
    start: str = "from zero"  # in words
    seed: int = 0
    settings: Steepest | Adam | None = None  # of the other methods; None: gradient, mirror descent

    @property
    def method(self) -> Method:
        """The method of :func:`attnmargin.train`."""
        return implied_method(self.p) if self.settings is None else self.settings

    @property
    def implied(self) -> Implication:
        """The norm of the direction, and how sure it is."""
        return implied_by(self.parameter, self.p, self.settings)

    @property
    def norm(self) -> Norm:
        """The norm of the direction."""
        found = self.implied.norm
        assert found is not None
        return found

    @property
    def asked(self) -> Any:
        """W(0), or the pair (K, Q), where a start was asked for; None for the usual one."""
        if self.init is None or self.start == _SMALL:
            return None
        return self.init if self.parameter == "KQ" else self.init[0]

    def __getitem__(self, index: Any) -> "Course":
        """Return the runs of members of the batch."""
        init = None if self.init is None else tuple(part[index] for part in self.init)
        return replace(self, lr=self.lr[index], init=init)

    def flatten(self) -> "Course":
        """Return the runs with one batch dimension."""
        init = self.init
        if init is not None:
            init = tuple(part.reshape(-1, *part.shape[-2:]) for part in init)
        return replace(self, lr=self.lr.reshape(-1), init=init)

    def train(
        self, data: AttentionData, steps: int, record: int, init: Any = None, **options: Any
    ) -> Trajectory:
        """Take steps of this course, from its start or from ``init``."""
        return train(
            data,
            self.parameter,
            self.method,
            p=self.p,
            lr=self.lr.to(data.X),
            normalize=self.normalize,
            loss=self.loss,
            steps=steps,
            record=record,
            init=self.init if init is None else init,
            seed=self.seed,
            **options,
        )

    def way(self, before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> Tensor:
        """Compute how far weights went, in the norm of their steps, ``(B,)``."""
        if self.settings is not None:
            found = self.settings.norm if isinstance(self.settings, Steepest) else "max"
            return as_norm(found).value(after[0].double() - before[0].double())
        first, last = (mirror(x[0].double(), self.p) for x in (before, after))
        return power_norm(last - first, self.p / (self.p - 1.0))[..., 0, 0]

    def words(self) -> str:
        """Name the start and the steps of one run, or of a batch."""
        return f"{self.start}, {self.pace()}"

    def pace(self) -> str:
        """Name the steps alone: their length, or the rate."""
        sizes = sorted(set(self.lr.flatten().tolist()))
        size = " to ".join(f"{x:g}" for x in dict.fromkeys((*sizes[:1], *sizes[-1:])))
        return f"steps of length {size}" if self.normalize else f"plain steps at rate {size}"


def plan(
    data: AttentionData, course: tuple[str, float, str | Loss], options: dict[str, Any]
) -> tuple[AttentionData, Course]:
    """Check how a run goes, and broadcast the data, rates and starts to one batch.

    Args:
        data: batch ``*B``.
        course: parameter, p and loss.
        options: init, lr, normalize, method, norm, steps and seed, as in
            :func:`attnmargin.predict`.
    """
    parameter, p, loss = course
    settings = _settings(options["method"], options["norm"], parameter, p)
    if not isinstance(options["normalize"], bool):
        raise InputError("normalize", repr(options["normalize"]), "True or False")
    check_whole(steps=options["steps"])
    lr = _rates(options["lr"])
    start, init = _start(data, parameter, options["init"], options["seed"])
    batches = [data.batch_shape, lr.shape, *(part.shape[:-2] for part in init or ())]
    try:
        batch = torch.broadcast_shapes(*batches)
    except RuntimeError as error:
        got = f"batches {', '.join(str(tuple(b)) for b in batches)} of data, lr and init"
        raise InputError("lr", got, "shapes that broadcast") from error
    if init is not None:
        init = tuple(part.expand(*batch, *part.shape[-2:]) for part in init)
    own = Course(parameter, p, loss, lr.expand(batch), options["normalize"], options["steps"],
                 init, start, options["seed"], settings)  # fmt: skip
    return data.expand(batch), own


def _settings(
    method: Method | None, norm: str | float | Norm | None, parameter: str, p: float
) -> Steepest | Adam | None:
    """Return the settings of a method that is not gradient or mirror descent, else None."""
    if isinstance(method, str) and method not in METHODS:
        raise InputError("method", f"{method!r}, which is unknown", f"one of {', '.join(METHODS)}")
    found = as_method(implied_method(p) if method is None else method, norm)
    if isinstance(found, str):
        if found != implied_method(p):
            raise InputError("method", repr(found), f"{implied_method(p)!r} for p = {p:g}, or None")
        implied_norm(parameter, p)  # raises unless there is one
        return None
    if p != 2.0:
        raise InputError("p", f"{p:g} with method {found}", "method 'mirror', or norm=p")
    if implied_by(parameter, p, found).norm is None:
        needs = "a method and a parameter whose norm is known, see am.methods.implication"
        raise InputError("method", f"{found} with parameter {parameter!r}", needs)
    plain = isinstance(found, Steepest) and found.plain
    return None if plain else found


def implied_by(parameter: str, p: float, settings: Steepest | Adam | None) -> Implication:
    """Return the norm that a method implies, and how sure that is."""
    if isinstance(settings, Steepest):
        return implication(parameter, "steepest", settings.norm, momentum=settings.momentum)
    return implication(parameter, implied_method(p) if settings is None else "adam", p=p)


def _rates(lr: Array) -> Tensor:
    if isinstance(lr, str | bool) or callable(lr):
        raise InputError("lr", repr(lr), "a number, or an array of them: one rate for all steps")
    given = finite("lr", floats("lr", lr)).to(torch.float64).cpu()
    if not bool((given > 0).all()):
        raise InputError("lr", f"{float(given.min()):g}", "positive numbers")
    return given


def random_weights(data: AttentionData, count: int, seed: int = 0) -> Tensor:
    """Draw starts W with normal entries of deviation 1/√d, ``(count, d, d)``."""
    generator = torch.Generator().manual_seed(seed_of("starts", base=seed))
    drawn = torch.randn(count, data.d, data.d, generator=generator, dtype=torch.float64)
    return (drawn / math.sqrt(data.d)).to(data.X)


def _start(
    data: AttentionData, parameter: str, init: Any, seed: int
) -> tuple[str, tuple[Tensor, ...] | None]:
    """Return the start in words, and its arrays; K and Q are drawn, each trial's by its place."""
    random = isinstance(init, str) and init == "random"
    if parameter == "KQ" and (init is None or random):
        parts = movable_start(sequences(data), "KQ", None, None, seed).parts()
        shaped = (part.reshape(*data.batch_shape, *part.shape[-2:]) for part in parts)
        return _SMALL, tuple(shaped)
    if random:
        return "from random weights", (random_weights(data, 1, seed)[0],)
    if init is None:
        return "from zero", None
    if isinstance(init, str):
        raise InputError("init", repr(init), "None, 'random', or weights")
    return GIVEN, _given(data, parameter, init)


def _given(data: AttentionData, parameter: str, init: Any) -> tuple[Tensor, ...]:
    count = 2 if parameter == "KQ" else 1
    several = isinstance(init, tuple) or (isinstance(init, list) and count == 2)
    parts = tuple(init) if several else (init,)
    if len(parts) != count:
        got = f"{counted(len(parts), 'array')} with parameter {parameter!r}"
        raise InputError("init", got, "a pair (K, Q)" if count == 2 else "an array W")
    found = tuple(finite("init", floats("init", part, like=data.X)) for part in parts)
    width = found[0].shape[-1] if count == 2 and found[0].ndim else data.d
    for part in found:
        if part.ndim < 2 or part.shape[-2:] != (data.d, width) or width == 0:
            needs = f"(*B, {data.d}, {width or 'm'})"
            raise InputError("init", f"shape {tuple(part.shape)}", needs)
    return found
