"""Guaranteed from here: what descent from a point W will select, proved (Theorems A, B, C)."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.selection import check_selection
from attnmargin.attention.softmax import flat_weights
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind, check_number
from attnmargin.base.compiled import one_thread
from attnmargin.base.display import Summarised, range_words, share_words
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.margin.norms import check_power
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.theory.guarantees.case import Case, build_case
from attnmargin.theory.guarantees.cone import Cone, Direction, build_direction, cone_at
from attnmargin.theory.guarantees.frame import Frame, build_frame
from attnmargin.theory.guarantees.funnel import Funnel, funnel_at
from attnmargin.theory.guarantees.level import Level, level_at
from attnmargin.theory.staying import excess_loss, staying_loss

# More tokens than this make an SVM large: one is solved for selections that have settled only.
_LARGE = 1000
# Plain steps in a funnel may be this many times as long as the first bound of the gradient says.
_ROOM = 2.0


@final
@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved at points; tensors have the batch shape ``*B``."""

    selection: Tensor  # int (*B, n): what descent ends in, where proved
    proved: Tensor  # bool
    together: Tensor  # bool: the tied best tokens of a sequence get all its attention, together
    by_level: Tensor  # bool: Theorem A holds
    by_funnel: Tensor  # bool: Theorem B holds
    by_cone: Tensor  # bool: Theorem C holds
    longest: Tensor  # longest step that is covered; 0 where nothing is proved
    rate: Tensor  # largest rate of plain descent that is covered
    share: Tensor  # least attention of a selected token, with its copies, or of tied ones, for ever
    obstacle: Tensor  # int, an Obstacle of Theorem B
    level: Level | None  # of gradient descent
    funnel: Funnel | None
    cone: Cone | None  # of mirror descent

    def correlation(self, norm: float | Tensor) -> Tensor:
        """Bound the correlation of W with its limit from below, where ``‖W‖_F`` is this large."""
        size = torch.as_tensor(norm, dtype=torch.float64, device=self.longest.device)
        size = size.expand(self.longest.shape)
        nothing = torch.full_like(size, -1.0)
        if self.level is None or self.funnel is None:
            return nothing
        return torch.maximum(
            self.level.tube.correlation(size).where(self.by_level, nothing),
            self.funnel.tube.correlation(size).where(self.by_funnel, nothing),
        )

    @property
    def divergence(self) -> Tensor:
        """Bound of the Bregman divergence of W from its limit for ever; 1 where none is proved."""
        nothing = torch.ones_like(self.longest)
        return nothing if self.cone is None else self.cone.divergence.where(self.by_cone, nothing)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Proof":
        """Change every tensor, to index or reshape the batch."""
        return _changed(self, change)


def _changed(part: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if part is None or isinstance(part, Tensor):
        return part if part is None else change(part)
    own = {f.name: _changed(getattr(part, f.name), change) for f in fields(part)}
    return replace(part, **own)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Summarised):
    """What is proved at a point, and the direction that it is about.

    From W on, gradient flow, and steps along the gradient of length at most ``longest`` with an
    infinite sum, end in the direction of ``solution.W``. Statements are about exact arithmetic from
    the given W on. The fields of ``proof`` are attributes of the guarantee too.
    """

    proof: Proof
    solution: Solution  # of the selection

    def __getattr__(self, name: str) -> Any:
        if name == "proof" or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.proof, name)

    def summary(self) -> dict[str, str]:
        """Return what is proved, by name."""
        own = self.proof
        return {
            "proved": share_words(own.proved),
            "by its loss (Theorem A)": share_words(own.by_level),
            "by its funnel (Theorem B)": share_words(own.by_funnel),
            "by its cone (Theorem C)": share_words(own.by_cone),
            "longest step": range_words(own.longest),
            "least attention": range_words(own.share),
        }

    def correlation(self, norm: float | Tensor) -> Tensor:
        """Bound the correlation of W with its limit from below, where ``‖W‖_F`` is this large.

        Returns:
            ``(*B,)``; −1 where nothing is proved. The bound is for steps of at most the length that
            was asked for.
        """
        return self.proof.correlation(norm)


@one_thread
def guarantee(
    data: AttentionData,
    W: Array,
    selection: Array | None = None,
    *,
    step: float = 0.1,
    p: float = 2.0,
    loss: str | Loss = "logistic",
) -> Guarantee:
    """Prove what gradient or mirror descent on W will select, from a point that it has reached.

    Theorem A: once ``L(W)`` is below the loss of every selection but the best tokens, descent ends
    in these. Theorem B: inside a funnel around the direction of a locally optimal selection,
    descent never leaves it. Theorem C: inside a cone around such a direction, in the ℓp norm,
    mirror descent never leaves it. See ``docs/guarantees.md`` for all three, with proofs.

    Args:
        data: tokens, queries, labels and a linear head; batch ``*B``. Equal tokens of a sequence
            count as one, the first, with the attention of all.
        W: the point, ``(*B, d, d)``.
        selection: int ``(*B, n)``; by default the most likely tokens at W.
        step: the length of the steps to come (the rate of normalised descent); 0 is the flow.
        p: of mirror descent; 2 is gradient descent.
        loss: as in :func:`attnmargin.train`.

    Returns:
        A :class:`Guarantee`. Where the loss proves the best tokens, ``selection`` are these.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(5, 5, 20, name="guarantee")
        >>> run = am.train(data, steps=1000, lr=0.1)
        >>> found = am.theory.guarantee(data, run.W[-1])
        >>> bool(found.proved), bool((found.selection == run.selection[-1]).all())
        (True, True)
    """
    check_kind("data", data, AttentionData)
    if data.v is None:
        raise InputError("data", "no head v", "a linear head: the theorems are about its scores")
    step = check_number("step", step, "a length of at least 0")
    if not step >= 0.0:
        raise InputError("step", f"{step:g}", "a length of at least 0")
    norm = implied_norm("W", check_power(p))
    W = flat_weights(data, W).to(torch.float64)
    case = build_case(data, loss, float(p))
    chosen = None
    if selection is not None:
        own = check_selection(data, selection).expand(*data.batch_shape, *case.best.shape[1:])
        chosen = case.merged(own.reshape(case.best.shape))
    steps = torch.full((len(W),), step, dtype=W.dtype, device=W.device)
    found = prove(case, W, steps, chosen).map(
        lambda x: x.reshape((*data.batch_shape, *x.shape[1:]))
    )
    merged = merge_copies(data).data
    problem = token_problem(merged.X, merged.z, found.selection, merged.mask)
    return Guarantee(found, solve(problem, norm))


def prove(case: Case, W: Tensor, step: Tensor, chosen: Tensor | None = None) -> Proof:
    """Check the theorems at W ``(B, d, d)``, for steps of lengths ``(B,)``."""
    logits = case.logits(W)
    chosen = case.selected(logits) if chosen is None else chosen
    if case.p != 2.0:
        return _prove_mirror(case, W, step, chosen)
    level = level_at(case, logits, W, step)
    frame = build_selected(case, chosen)
    funnel = funnel_at(frame, W, step)
    low = level.proved & (level.longest >= step)
    by_level, together = low & ~case.tied, low & case.tied
    inner = (...,) + (None,) * (case.best.ndim - 1)
    selection = case.best.where(by_level[inner], chosen)
    by_funnel = funnel.proved & (selection == chosen).flatten(1).all(-1)
    leading = by_level | (together & ~by_funnel)
    longest, rate, share = (
        torch.maximum(a.where(leading, 0.0), b.where(by_funnel, 0.0))
        for a, b in (
            (level.longest, funnel.longest),
            (level.rate, step * (-funnel.log_gradient).exp()),
            (level.share, funnel.share),
        )
    )
    proved = by_level | by_funnel
    sure = (selection, proved, together, by_level, by_funnel, torch.zeros_like(proved))
    return Proof(*sure, longest, rate, share, frame.obstacle, level, funnel, None)


def _prove_mirror(case: Case, W: Tensor, step: Tensor, chosen: Tensor) -> Proof:
    """Check Theorem C."""
    cone = cone_at(direction_of(case, chosen), W)
    proved = cone.proved & (cone.longest >= step)
    none = torch.zeros_like(proved)
    longest, share = (x.where(proved, 0.0) for x in (cone.longest, cone.share))
    rate = longest * (-cone.log_gradient).exp()
    sure = (chosen, proved, none, none, none, proved, longest, rate, share)
    return Proof(*sure, torch.zeros_like(chosen.flatten(1)[:, 0]), None, None, cone)


def is_proved(
    case: Case, W: Tensor, pace: Tensor, plain: bool, settled: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Check quickly whether a theorem holds at W ``(B, d, d)``.

    Args:
        case: the instances.
        W: the points.
        pace: lengths of steps ``(B,)``, or rates of plain descent.
        plain: which of the two.
        settled: bool ``(B,)``, where a funnel is worth a large SVM.

    Returns:
        Where one proves the selection, bool ``(B,)``; where Theorem A proves it of tied tokens
        together; and the lengths of steps that :func:`prove` confirms, ``(B,)``.
    """
    logits, step = case.logits(W), pace.clone()
    if case.p != 2.0:
        return _is_proved_mirror(case, W, logits, pace, plain, settled)
    low = torch.zeros_like(pace, dtype=torch.bool)
    below = excess_loss(case.goal, logits) < staying_loss(case.goal, 1.0, case.doubt)
    rows = below.nonzero()[:, 0]
    if len(rows):
        level = level_at(case.take(rows), logits[rows], W[rows], torch.zeros_like(pace[rows]))
        low[rows] = level.proved & ((level.rate if plain else level.longest) >= pace[rows])
        step[rows] = level.gradient * pace[rows] if plain else pace[rows]
    proved, together = low & ~case.tied, low & case.tied
    clear = (torch.softmax(logits, -1).amax(-1) > 0.5).all(-1)
    worth = settled | (logits[0].numel() <= _LARGE) if len(logits) else settled
    rows = (~proved & clear & worth).nonzero()[:, 0]
    if len(rows):
        part = case.take(rows)
        frame = build_selected(part, part.selected(logits[rows]))
        proved[rows], own = _in_funnel(frame, W[rows], pace[rows], plain)
        step[rows] = own.where(proved[rows], step[rows])
    return proved, together, step


def _is_proved_mirror(
    case: Case, W: Tensor, logits: Tensor, pace: Tensor, plain: bool, settled: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Check Theorem C, where the selection has settled and is clear; see :func:`is_proved`."""
    none = torch.zeros_like(settled)
    proved, step = none.clone(), pace.clone()
    rows = (settled & (torch.softmax(logits, -1).amax(-1) > 0.5).all(-1)).nonzero()[:, 0]
    if len(rows):
        part = case.take(rows)
        cone = cone_at(direction_of(part, part.selected(logits[rows])), W[rows])
        bound = pace[rows] * cone.log_gradient.exp() if plain else pace[rows]
        proved[rows] = cone.proved & (cone.longest >= bound)
        step[rows] = bound.where(proved[rows], pace[rows])
    return proved, none, step


def direction_of(case: Case, chosen: Tensor) -> Direction:
    """Build the ℓp direction of a selection; the last one is kept."""
    kept = case.kept
    if kept is not None and isinstance(kept[1], Direction) and torch.equal(kept[0], chosen):
        return kept[1]
    found = build_direction(
        case.goal, case.solve(chosen), _copies(case, chosen), case.doubt, case.p
    )
    case.kept = (chosen, found)
    return found


def _copies(case: Case, chosen: Tensor) -> Tensor:
    """Log of the number of copies of a token, over that of the chosen one, ``(B, N, T)``."""
    counts = case.log_count
    return counts - counts.gather(-1, chosen.reshape(*counts.shape[:2], 1))


def _in_funnel(frame: Frame, W: Tensor, pace: Tensor, plain: bool) -> tuple[Tensor, Tensor]:
    """Check Theorem B; return the lengths of steps too."""
    if not plain:
        return funnel_at(frame, W, pace, measured=False).proved, pace
    flow = funnel_at(frame, W, torch.zeros_like(pace), measured=False)
    step = _ROOM * pace * flow.log_gradient.exp().where(flow.proved, 0.0)
    found = funnel_at(frame, W, step, measured=False)
    covered = step >= pace * found.log_gradient.exp()
    return flow.proved & found.proved & covered, step


def build_selected(case: Case, chosen: Tensor) -> Frame:
    """Build the frame of a selection, int ``(B, n)`` or ``(B, n, K)``; the last one is kept."""
    kept = case.kept
    if kept is not None and isinstance(kept[1], Frame) and torch.equal(kept[0], chosen):
        return kept[1]
    frame = build_frame(case.goal, case.solve(chosen), _copies(case, chosen), case.doubt)
    case.kept = (chosen, frame)
    return frame
