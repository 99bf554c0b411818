"""Follow runs until a theorem proves where they end, or their steps are used up."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import mirror, power_norm
from attnmargin.prediction.course import Course
from attnmargin.theory.guarantees.case import build_case
from attnmargin.theory.guarantees.proof import Proof, is_proved, prove
from attnmargin.theory.staying import excess_loss, staying_loss

# The first record, and the ratio of one record to the one before.
_FIRST, _RATIO = 32, 2.0**0.5
# A selection that is the same since this share of the steps has settled; with this attention of
# every selected token it is clear.
_SETTLED, _CLEAR = 0.5, 0.9
# A run whose net way between two records is a smaller share of its steps goes nowhere.
_AHEAD = 0.05


@final
@dataclass(frozen=True, eq=False)
class Ending:
    """Where runs were left: at their proof, or after all their steps; batch ``*B``."""

    selection: Tensor  # int (*B, n): of equal tokens the first
    proved: Tensor  # bool: steps like those before end in this selection
    flow: Tensor  # bool: gradient flow, or mirror flow, from here keeps this selection
    since: Tensor  # int: the record of the proof; −1 where there is none
    settled: Tensor  # int: the record since which the selection is the same
    steps: Tensor  # int: steps taken
    W: Tensor  # (*B, d, d) there, float64
    share: Tensor  # least attention of a selected token, with its copies, at W
    resting: Tensor  # bool: the last steps led nowhere
    proof: Proof | None  # at W; None where no theorem is about the steps

    @property
    def unsettled(self) -> Tensor:
        """Whether the selection changed late, bool."""
        return self.settled > _SETTLED * self.steps

    @property
    def unclear(self) -> Tensor:
        """Whether some selected token has little attention, bool."""
        return self.share <= _CLEAR

    @property
    def calm(self) -> Tensor:
        """Whether the run keeps growing with a clear selection that has settled, bool."""
        return ~(self.unsettled | self.unclear | self.resting)

    def __getitem__(self, index: Any) -> "Ending":
        """Return members of the batch."""
        return self._map(lambda x: x[index])

    def reshape(self, batch: torch.Size) -> "Ending":
        """Give one batch dimension another shape."""
        return self._map(lambda x: x.reshape((*batch, *x.shape[1:])))

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Ending":
        proof = None if self.proof is None else self.proof.map(change)
        names = [field.name for field in fields(self) if field.name != "proof"]
        return replace(self, proof=proof, **{name: change(getattr(self, name)) for name in names})


def follow(data: AttentionData, course: Course, progress: Progress | None = None) -> Ending:
    """Train until a theorem proves where every run ends, at most for the steps of its course.

    Args:
        data: one batch dimension, ``(B,)``.
        course: of the same batch.
        progress: called with the steps taken and their number.
    """
    runs = _Runs(data, course)
    before = 0
    for moment in _moments(course.steps):
        runs.advance(moment - before, moment)
        before = moment
        if progress is not None:
            progress(moment, course.steps)
        if len(runs.live) == 0:
            break
    return runs.ending()


def _moments(steps: int) -> list[int]:
    """Space the records geometrically, from the start to the last step."""
    found, size = [0], float(_FIRST)
    while size < steps:
        found.append(int(size))
        size *= _RATIO
    return [*found, steps]


def _way(course: Course, before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> Tensor:
    """How far the weights are from where they were, in the length of their steps, ``(B,)``."""
    first, last = (mirror(x[0].double(), course.p) for x in (before, after))
    return power_norm(last - first, course.p / (course.p - 1.0))[..., 0, 0]


@final
class _Runs:
    """The runs of a batch, and what is known of each."""

    def __init__(self, data: AttentionData, course: Course) -> None:
        self.data, self.course, self.case = data, course, build_case(data, course.loss)
        B = data.batch_shape.numel()
        self.last = course.train(data, 0, 1).last
        self.live = torch.arange(B)
        self.proved, self.resting = (torch.zeros(B, dtype=torch.bool) for _ in range(2))
        self.steps, self.settled = (torch.zeros(B, dtype=torch.int64) for _ in range(2))
        self.length = course.lr.clone()
        self.W = torch.zeros(B, data.d, data.d, dtype=torch.float64)
        self.selection = torch.full_like(self.case.best, -1)

    @property
    def provable(self) -> bool:
        """Whether the theorems are about these steps: gradient descent on W."""
        return self.course.parameter == "W" and self.course.p == 2.0

    def advance(self, count: int, moment: int) -> None:
        """Take steps with the runs that are not proved, and look for a proof."""
        rows = self.live
        part, course = self._part(rows)
        before = tuple(x[rows] for x in self.last)
        run = course.train(part, count, max(count, 1), before)
        if count > 0 and course.normalize:
            self.resting[rows] = _way(course, before, run.last) < _AHEAD * count * course.lr
        for whole, own in zip(self.last, run.last, strict=True):
            whole[rows] = own
        W, case = run.W[-1].double(), self.case.take(rows)
        chosen = case.selected(case.logits(W))
        changed = (chosen != self.selection[rows]).flatten(1).any(-1)
        self.settled[rows] = torch.where(changed, moment, self.settled[rows])
        self.selection[rows], self.W[rows], self.steps[rows] = chosen, W, moment
        if self.provable:
            found, self.length[rows] = is_proved(case, W, course.lr, not course.normalize, ~changed)
            self.proved[rows] = found
            self.live = rows[~found]

    def _part(self, rows: Tensor) -> tuple[AttentionData, Course]:
        if len(rows) == len(self.proved):
            return self.data, self.course
        return self.data[rows], self.course[rows]

    def ending(self) -> Ending:
        """Return where the runs are, with the proofs."""
        case, logits = self.case, self.case.logits(self.W)
        share = torch.softmax(logits, -1).amax(-1).amin(-1)
        found, selection, flow = None, self.selection, self._kept(logits)
        if self.provable:
            found = prove(case, self.W, self.length.where(self.proved, 0.0))
            flow = found.proved
            inner = (...,) + (None,) * (selection.ndim - 1)
            selection = found.selection.where(self.proved[inner], selection)
        since = self.steps.where(self.proved, -1)
        return Ending(
            selection, self.proved, flow, since, self.settled, self.steps, self.W, share,
            self.resting & ~self.proved, found,
        )  # fmt: skip

    def _kept(self, logits: Tensor) -> Tensor:
        """Check whether the loss is too low for the flow to leave the best tokens.

        For mirror flow any loss below that of the other selections is; with (K, Q) it is the level
        at which every best token has the majority.
        """
        goal = self.case.goal
        level = staying_loss(goal, 1.0 if self.course.parameter == "W" else 0.5)
        best = (self.selection == self.case.best).flatten(1).all(-1)
        falls = goal.loss.always_falls
        return best & falls & (excess_loss(goal, logits) < level)
