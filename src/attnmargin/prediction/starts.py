"""What runs from random starts end in, and how often."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.display import Summarised, share_words
from attnmargin.base.intervals import share_interval
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.prediction.course import Course, random_weights
from attnmargin.prediction.ending import follow


@final
@dataclass(frozen=True, eq=False, repr=False)
class Starts(Summarised):
    """The selections that runs from random starts end in, the most frequent first."""

    selections: Tensor  # int (S, n)
    count: Tensor  # int (S,): runs that end in each, or are there after the last step
    proved: Tensor  # int (S,): those of them whose end is proved

    def summary(self) -> dict[str, str]:
        """Return how many runs end in how many selections, by name."""
        return {
            "runs": f"{int(self.count.sum()):,}",
            "selections": str(len(self.selections)),
            "proved": share_words(self._proved()),
            "most frequent": f"{float(self.share[0]):.3f}" if len(self.count) else "–",
        }

    def _proved(self) -> Tensor:
        return torch.arange(int(self.count.sum())) < int(self.proved.sum())

    @property
    def share(self) -> Tensor:
        """Share of the runs, ``(S,)``."""
        return self.count.double() / int(self.count.sum())

    @property
    def interval(self) -> Tensor:
        """Wilson's 95 % interval of each share, ``(S, 2)``."""
        low, high = share_interval(self.count.numpy(), int(self.count.sum()))
        return torch.from_numpy(np.stack((low, high), -1))


def many_starts(
    data: AttentionData, course: Course, count: int, progress: Progress | None = None
) -> Any:
    """Follow runs from random starts, an array of :class:`Starts` of the shape of the batch.

    W starts with normal entries of deviation 1/√d; K and Q as :func:`attnmargin.train` draws them.
    """
    batch = data.batch_shape
    wide = data.expand((count, *batch)).flatten()
    runs = replace(course, lr=course.lr.expand(count, *batch), init=None).flatten()
    if course.parameter == "W":
        W = random_weights(data, count, course.seed)
        W = W[(slice(None),) + (None,) * len(batch)].expand(count, *batch, data.d, data.d)
        runs = replace(runs, init=(W.reshape(-1, data.d, data.d),))
    ending = follow(wide, runs, progress)
    chosen = ending.selection.reshape(count, batch.numel(), *ending.selection.shape[1:])
    proved = ending.proved.reshape(count, batch.numel())
    found = np.empty(tuple(batch), dtype=object)
    for k, index in enumerate(np.ndindex(*batch)):
        found[index] = _counted(chosen[:, k], proved[:, k])
    return found


def _counted(chosen: Tensor, proved: Tensor) -> Starts:
    kinds, which, count = chosen.unique(dim=0, return_inverse=True, return_counts=True)
    sure = torch.zeros_like(count).scatter_add(0, which, proved.long())
    order = count.argsort(descending=True, stable=True)
    return Starts(kinds[order], count[order], sure[order])
