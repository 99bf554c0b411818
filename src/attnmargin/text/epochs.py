"""Training in epochs: a row of numbers for each, a checkpoint after each, and resume."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.text.checkpoint import Checkpoint, History

Tensors = dict[str, Tensor]
# Writes a checkpoint that holds these tensors.
Save = Callable[[Tensors], None]


class Run(Protocol):
    """What is trained: the numbers of its epochs, and its record as it stands in JSON."""

    history: History

    def record(self) -> dict[str, Any]:
        """As it stands in JSON."""


def resume(run: Run, out: str | Path | None, load: Callable[[Tensors], None]) -> Save:
    """Go on from the checkpoint of a folder, if it has one, and return what saves the next.

    Args:
        out: the folder; None keeps no checkpoints.
        load: puts the tensors of a checkpoint into model and optimiser.
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
    """Train until ``finished``, and add a row to the history of the run for every epoch.

    Args:
        lr: the rate, which is refused if the loss becomes infinite with it.
        epoch: trains the epoch of a number, counted from 0, and returns its row.
        after: called after every epoch, such as to save a checkpoint.
    """
    while not finished():
        row = epoch(len(run.history))
        _check_loss(row["loss"], lr)
        run.history.append(row)
        after()


def epoch_row(epoch: int, loss: float, train: float, start: float) -> dict[str, float]:
    """Make the row of an epoch: mean loss, accuracy in training, seconds since ``start``."""
    seconds = time.perf_counter() - start
    return {"epoch": epoch + 1.0, "loss": loss, "train": train, "seconds": seconds}


def _check_loss(loss: float, lr: float) -> None:
    """Raise InputError where training diverges with this rate."""
    if not math.isfinite(loss):
        raise InputError("lr", f"{lr:g}, with which the loss becomes {loss:g}", "a smaller rate")
