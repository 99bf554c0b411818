"""Follow runs until a theorem proves where they end, or their steps are used up."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.implied import implied_norm
from attnmargin.prediction.course import Course
from attnmargin.prediction.onward import follow_on
from attnmargin.selections.local_optimality import locality
from attnmargin.theory.guarantees.case import Case, build_case
from attnmargin.theory.guarantees.proof import Proof, is_proved, prove
from attnmargin.theory.staying import excess_loss, staying_loss
from attnmargin.training.methods import Adam

# The first record, and the ratio of one record to the one before.
_FIRST, _RATIO = 32, 2.0**0.5
# A selection that is the same since this share of the steps has settled; with this attention of
# every selected token it is clear.
_SETTLED, _CLEAR = 0.5, 0.9
# A run whose net way between two records is a smaller share of its steps goes nowhere.
_AHEAD = 0.05
# Records of a run that is not followed to a proof.
_RECORDS = 64


@final
@dataclass(frozen=True, eq=False)
class Ending:
    """Where runs were left: at their proof, or after all their steps; batch ``*B``."""

    selection: Tensor  # int (*B, n): of equal tokens the first
    proved: Tensor  # bool: steps like those before end in this selection
    together: Tensor  # bool: they end in the best tokens, and how tied ones share is not proved
    flow: Tensor  # bool: gradient flow, or mirror flow, from here keeps this selection
    onward: Tensor  # the norm at which the run, followed on in long steps, is proved; else infinite
    since: Tensor  # int: the record of the proof; −1 where there is none
    settled: Tensor  # int: the record since which the selection is the same
    steps: Tensor  # int: steps taken
    W: Tensor  # (*B, d, d) there, float64
    share: Tensor  # least attention of a selected token, with its copies, at W
    resting: Tensor  # bool: the last steps led nowhere
    parted: Tensor  # bool: settled where it may stay, and long steps lead to other tokens
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
        return ~(self.unsettled | self.unclear | self.resting | self.parted)

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
    if course.settings is not None:
        return _observed(data, course, progress)
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


def _observed(data: AttentionData, course: Course, progress: Progress | None) -> Ending:
    """Train by a method that no theorem is about, and say where it is after all its steps.

    In one run, because its momentum must not start anew.
    """
    record = max(course.steps // _RECORDS, 1)
    run = course.train(data, course.steps, record, progress=progress)
    case, B = build_case(data, course.loss), len(data.X)
    chosen = torch.stack([case.selected(case.logits(W.double())) for W in run.W])
    changed = (chosen[1:] != chosen[:-1]).flatten(2).any(-1)
    settled = (changed * run.steps[1:, None]).amax(0)
    W, nothing = run.W[-1].double(), torch.zeros(B, dtype=torch.bool)
    resting, early = nothing, len(run.steps) * 3 // 4
    if course.parameter == "W" and course.normalize and not isinstance(course.settings, Adam):
        # Adam slows down where gradients fall faster than its memory, and goes on.
        count = course.steps - int(run.steps[early])
        resting = course.way((run.W[early],), (run.W[-1],)) < _AHEAD * count * course.lr
    share = torch.softmax(case.logits(W), -1).amax(-1).amin(-1)
    steps = torch.full((B,), course.steps)
    return Ending(
        chosen[-1], nothing, nothing, nothing, torch.full_like(share, torch.inf),
        torch.full((B,), -1), settled, steps, W, share, resting, nothing, None,
    )  # fmt: skip


def _moments(steps: int) -> list[int]:
    """Space the records geometrically, from the start to the last step."""
    found, size = [0], float(_FIRST)
    while size < steps:
        found.append(int(size))
        size *= _RATIO
    return [*found, steps]


@final
class _Runs:
    """The runs of a batch, and what is known of each."""

    def __init__(self, data: AttentionData, course: Course) -> None:
        self.data, self.course, self.case = data, course, build_case(data, course.loss, course.p)
        B = data.batch_shape.numel()
        self.last = course.train(data, 0, 1).last
        self.live = torch.arange(B)
        self.proved, self.together, self.resting = torch.zeros(3, B, dtype=torch.bool)
        self.since = torch.full((B,), -1)
        self.steps, self.settled = (torch.zeros(B, dtype=torch.int64) for _ in range(2))
        self.length = course.lr.clone()
        self.W = torch.zeros(B, data.d, data.d, dtype=torch.float64)
        self.selection = torch.full_like(self.case.best, -1)

    @property
    def provable(self) -> bool:
        """Whether the theorems are about these steps: gradient or mirror descent on W."""
        return self.course.parameter == "W"

    def advance(self, count: int, moment: int) -> None:
        """Take steps with the runs that are not proved, and look for a proof."""
        rows = self.live
        part, course = self._part(rows)
        before = tuple(x[rows] for x in self.last)
        run = course.train(part, count, max(count, 1), before)
        if count > 0 and course.normalize:
            self.resting[rows] = course.way(before, run.last) < _AHEAD * count * course.lr
        for whole, own in zip(self.last, run.last, strict=True):
            whole[rows] = own
        W, case = run.W[-1].double(), self.case.take(rows)
        chosen = case.selected(case.logits(W))
        changed = (chosen != self.selection[rows]).flatten(1).any(-1)
        self.settled[rows] = torch.where(changed, moment, self.settled[rows])
        self.selection[rows], self.W[rows], self.steps[rows] = chosen, W, moment
        if self.provable:
            found, together, self.length[rows] = is_proved(
                case, W, course.lr, not course.normalize, ~changed
            )
            new = found | (together & ~self.together[rows])
            self.since[rows] = self.since[rows].where(~new, moment)
            self.proved[rows], self.together[rows] = found, together | self.together[rows]
            self.live = rows[~found]

    def _part(self, rows: Tensor) -> tuple[AttentionData, Course]:
        if len(rows) == len(self.proved):
            return self.data, self.course
        return self.data[rows], self.course[rows]

    def ending(self) -> Ending:
        """Return where the runs are, with the proofs."""
        case, logits = self.case, self.case.logits(self.W)
        share = torch.softmax(logits, -1).amax(-1).amin(-1)
        found, selection, flow = None, self.selection, self._kept(case, logits)
        inner = (...,) + (None,) * (selection.ndim - 1)
        sure = self.proved | self.together
        if self.provable:
            found = prove(case, self.W, self.length.where(sure, 0.0))
            flow = found.proved | flow
            selection = found.selection.where(self.proved[inner], selection)
            self.together &= found.together
        onward, further = self._onward(~(sure | self.resting))
        other = torch.isfinite(onward) & (further != selection).flatten(1).any(-1)
        parted = other & (self.settled <= _SETTLED * self.steps) & (share > _CLEAR)
        parted[parted.clone()] = self._may_stay(parted, selection)
        selection = further.where((other & ~parted)[inner], selection)
        together, resting = self.together & ~self.proved, self.resting & ~sure
        return Ending(
            selection, self.proved, together, flow, onward, self.since, self.settled, self.steps,
            self.W, share, resting, parted, found,
        )  # fmt: skip

    def _onward(self, open_: Tensor) -> tuple[Tensor, Tensor]:
        """Follow runs on: the norms where they are proved, else infinite, and their selections."""
        norm = torch.full_like(self.length, torch.inf)
        further, rows = self.selection.clone(), open_.nonzero()[:, 0]
        if len(rows):
            data, course = self._part(rows)
            case = self.case.take(rows)
            own = tuple(part[rows] for part in self.last)
            W, found = follow_on(data, course, own, lambda k, W: self._flows(case.take(k), W))
            norm[rows] = W.norm(dim=(-2, -1)).where(found, torch.inf)
            further[rows] = case.selected(case.logits(W))
            if self.provable:  # the best tokens, where the loss proves them
                further[rows] = prove(case, W, torch.zeros_like(norm[rows])).selection
        return norm, further

    def _may_stay(self, rows: Tensor, selection: Tensor) -> Tensor:
        """Tell where nothing that is needed pulls away from a selection, bool ``(B',)``."""
        norm = implied_norm(self.course.parameter, self.course.p)
        found = locality(self.case.data[rows], selection[rows], norm)
        return found.local | found.marginal | found.undecided

    def _flows(self, case: Case, W: Tensor) -> Tensor:
        """Check whether gradient flow, or mirror flow, from W keeps what W selects, ``(B,)``."""
        kept = self._kept(case, case.logits(W))
        if not self.provable:
            return kept
        flow, every = torch.zeros(len(W), dtype=W.dtype), torch.ones(len(W), dtype=torch.bool)
        return kept | is_proved(case, W, flow, False, every)[0]

    def _kept(self, case: Case, logits: Tensor) -> Tensor:
        """Check whether the loss is too low for the flow to leave the best tokens.

        For mirror flow any loss below that of the other selections is; with (K, Q) it is the level
        at which every best token has the majority. Theorem A says it of gradient descent on W.
        """
        if self.course.parameter == "W" and self.course.p == 2.0:
            return torch.zeros(len(logits), dtype=torch.bool)
        level = staying_loss(case.goal, 1.0 if self.course.parameter == "W" else 0.5)
        best = (case.selected(logits) == case.best).flatten(1).all(-1)
        falls = case.goal.loss.always_falls
        return best & falls & (excess_loss(case.goal, logits) < level)
