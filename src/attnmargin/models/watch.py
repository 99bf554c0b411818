"""Heads along training: do they turn to their max-margin direction?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.models.head import Head
from attnmargin.models.settings import Settings
from attnmargin.models.study import HeadStudy, study_heads

NUMBERS = ("saturation", "entropy", "efficiency", "cosine")


@final
@dataclass(eq=False, repr=False)
class Watch(Summarised):
    """Records what heads select, and how near they are to max-margin, while a model trains.

    Args:
        read: returns the heads as they are at the moment, always the same ones, such as
            ``lambda: am.models.read_heads(model, texts, tokenizer, layers=[1])``.
        every: steps between two records.
        settings: of :func:`study_heads`; every record draws its own random heads.

    In a plain loop, call ``watch(step)`` after every step; for a transformers ``Trainer``, pass
    ``callbacks=[watch.callback()]``. ``am.plot.watch(watch)`` draws the records.

    Example:
        >>> import attnmargin as am, torch
        >>> draw = torch.Generator().manual_seed(0)
        >>> W, X = torch.randn(2, 3, 6, generator=draw), torch.randn(3, 5, 6, generator=draw)
        >>> watch = am.models.Watch(lambda: [am.models.Head(*W, X)], every=10)
        >>> for step in range(21):
        ...     watch(step)
        >>> watch.steps, watch.of("efficiency").shape
        ([0, 10, 20], (3, 1))
    """

    read: Callable[[], Iterable[Head]]
    every: int = 1
    settings: Settings = field(default_factory=Settings)
    steps: list[int] = field(default_factory=list)
    records: list[list[HeadStudy]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_whole(every=self.every)
        if not callable(self.read):
            raise InputError(
                "read", f"a {type(self.read).__name__}", "a function without arguments"
            )

    def __call__(self, step: int) -> None:
        """Record the heads, if ``step`` is a multiple of ``every``."""
        if step % self.every == 0:
            self.record(step)

    def record(self, step: int) -> None:
        """Record the heads."""
        studies = study_heads(self.read(), self.settings)
        places = [(own.layer, own.index) for own in studies]
        if self.records and places != self.places:
            raise InputError("read", f"the heads {places}", f"the same as before, {self.places}")
        self.steps.append(step)
        self.records.append([replace(own, shown=[]) for own in studies])

    def callback(self) -> Any:
        """Return a callback for a transformers ``Trainer``, which records at its steps."""
        try:
            from transformers import TrainerCallback
        except ImportError as error:
            raise MissingPackageError("a callback of Trainer", "attnmargin[models]") from error
        watch = self

        class WatchCallback(TrainerCallback):
            """Records before the first step, and after every step that counts."""

            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watch(state.global_step)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watch(state.global_step)

        return WatchCallback()

    @property
    def places(self) -> list[tuple[int, int]]:
        """Layer and number of every head."""
        return [(own.layer, own.index) for own in self.records[0]] if self.records else []

    def of(self, name: str, null: bool = False) -> NDArray[np.float64]:
        """Return one number along training, ``(records, heads)``.

        Args:
            name: "saturation", "entropy", "efficiency", "cosine", "margin", "best", or "length",
                the Frobenius norm of W.
            null: of the random heads instead, for the first four.
        """
        if name == "length":
            rows = [[own.spectrum.frobenius for own in row] for row in self.records]
        elif name in NUMBERS:
            kind = "null" if null else "value"
            rows = [[getattr(getattr(own, name), kind) for own in row] for row in self.records]
        elif name in ("margin", "best") and not null:
            rows = [[getattr(own, name) for own in row] for row in self.records]
        else:
            known = ", ".join((*NUMBERS, "margin", "best", "length"))
            raise InputError("name", repr(name), f"one of {known}; of random heads the first four")
        return np.array(rows, dtype=float)

    def summary(self) -> dict[str, str]:
        """Return steps, heads and the course of the efficiency, by name."""
        if not self.records:
            return {"records": "none"}
        course = np.nanmedian(self.of("efficiency"), -1)
        return {
            "records": f"{len(self.steps)}, steps {self.steps[0]} to {self.steps[-1]}",
            "heads": f"{len(self.places)}",
            "efficiency": f"{course[0]:.3g} to {course[-1]:.3g}, median of the heads",
        }
