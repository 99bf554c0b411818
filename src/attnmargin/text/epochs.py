"""Training in epochs: one row of numbers and one checkpoint per epoch, and resume."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.text.checkpoint import Checkpoint, History

Tensors = dict[str, Tensor]
# A function that writes these tensors to a checkpoint.
Save = Callable[[Tensors], None]


class Run(Protocol):
    """A training run: the history of its epochs, and a JSON-ready record."""

    history: History

    def record(self) -> dict[str, Any]:
        """Return the run as a JSON-ready record."""


def resume(run: Run, out: str | Path | None, load: Callable[[Tensors], None]) -> Save:
    """Resume from the checkpoint in a folder, if any; return the function that saves the next.

    Args:
        out: the folder; None keeps no checkpoints.
        load: loads the tensors of a checkpoint into model and optimiser.
    """
    if out is None:
        return lambda tensors: None
    checkpoint = Checkpoint.at(out)
    found = checkpoint.load(run.record())
    if found is not None:
        tensors, history = found
        try:
            load(tensors)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise checkpoint.unfit(error) from None
        run.history[:] = history
    return lambda tensors: checkpoint.save(tensors, run.record())


def run_epochs(
    run: Run,
    lr: float,
    finished: Callable[[], bool],
    epoch: Callable[[int], dict[str, float]],
    after: Callable[[], None],
) -> None:
    """Train until ``finished``, and append one row per epoch to the history of the run.

    Args:
        lr: the rate, rejected if the loss becomes infinite.
        epoch: trains one epoch, numbered from 0, and returns its row.
        after: called after every epoch, for example to save a checkpoint.
    """
    while not finished():
        row = epoch(len(run.history))
        _check_loss(row["loss"], lr)
        run.history.append(row)
        after()


def epoch_row(epoch: int, loss: float, train: float, start: float) -> dict[str, float]:
    """Build the row of an epoch: mean loss, training accuracy, seconds since ``start``."""
    seconds = time.perf_counter() - start
    return {"epoch": epoch + 1.0, "loss": loss, "train": train, "seconds": seconds}


def _check_loss(loss: float, lr: float) -> None:
    """Raise InputError if training diverges at this rate."""
    if not math.isfinite(loss):
        raise InputError("lr", f"{lr:g}, with which the loss becomes {loss:g}", "a smaller rate")
