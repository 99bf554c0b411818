"""Guaranteed from here: what descent from a point W will select, proved (Theorems A and B)."""

from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.score import optimal_tokens
from attnmargin.attention.selection import check_selection
from attnmargin.attention.softmax import Objective, flat_weights, objective, relative_logits
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind, check_number
from attnmargin.base.compiled import one_thread
from attnmargin.base.display import Summarised, range_words, share_words
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.theory.guarantees.frame import build_frame
from attnmargin.theory.guarantees.funnel import Funnel, funnel_at
from attnmargin.theory.guarantees.level import Level, level_at


@final
@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Summarised):
    """What is proved at a point; tensors have the batch shape ``*B``.

    From W on, gradient flow, and steps along the gradient of length at most ``longest`` with an
    infinite sum, end in the direction of ``solution.W``. Statements are about exact arithmetic from
    the given W on.
    """

    selection: Tensor  # int (*B, n): what descent ends in, where proved
    proved: Tensor  # bool
    by_level: Tensor  # bool: Theorem A holds
    by_funnel: Tensor  # bool: Theorem B holds
    longest: Tensor  # longest step that is covered; 0 where nothing is proved
    rate: Tensor  # largest rate of plain descent that is covered
    share: Tensor  # least attention of a selected token for ever
    obstacle: Tensor  # int, an Obstacle of Theorem B
    solution: Solution  # of the selection
    level: Level
    funnel: Funnel

    def summary(self) -> dict[str, str]:
        """Return what is proved, by name."""
        return {
            "proved": share_words(self.proved),
            "by its loss (Theorem A)": share_words(self.by_level),
            "by its funnel (Theorem B)": share_words(self.by_funnel),
            "longest step": range_words(self.longest),
            "least attention": range_words(self.share),
        }


@one_thread
def guarantee(
    data: AttentionData,
    W: Array,
    selection: Array | None = None,
    *,
    step: float = 0.1,
    loss: str | Loss = "logistic",
) -> Guarantee:
    """Prove what gradient descent on W will select, from a point that it has reached.

    Theorem A: once ``L(W)`` is below the loss of every selection but the best tokens, descent ends
    in these. Theorem B: inside a funnel around the direction of a locally optimal selection,
    descent never leaves it. See ``docs/guarantees.md`` for both, with proofs.

    Args:
        data: tokens, queries, labels and a linear head; batch ``*B``.
        W: the point, ``(*B, d, d)``.
        selection: int ``(*B, n)``; by default the most likely tokens at W.
        step: the length of the steps to come (the rate of normalised descent); 0 is gradient flow.
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
    if step < 0.0:
        raise InputError("step", f"{step:g}", "a length of at least 0")
    flat, W = _flattened(data), flat_weights(data, W).to(torch.float64)
    chosen = relative_logits(flat, W).argmax(-1)
    if selection is not None:
        chosen = (
            check_selection(data, selection).expand_as(optimal_tokens(data)).reshape(chosen.shape)
        )
    goal = objective(flat, "linear", loss)
    return _shaped(data, _proved(flat, goal, W, chosen, step))


def _flattened(data: AttentionData) -> AttentionData:
    """Return the data in float64 with one batch dimension, and at least two tokens a sequence."""
    batch = data.batch_shape
    many = len(batch)

    def flat(x: Tensor | None) -> Tensor | None:
        if x is None:
            return None
        return x.expand(*batch, *x.shape[many:]).reshape(batch.numel(), *x.shape[many:])

    X, z, y, mask = (flat(x) for x in (data.X, data.z, data.y, data.mask))
    assert X is not None
    assert z is not None
    assert data.v is not None
    if data.T == 1:  # a second token that is hidden: its row does not exist
        seen = torch.ones_like(X[..., 0], dtype=torch.bool) if mask is None else mask
        mask = torch.cat((seen, torch.zeros_like(seen)), -1)
        X = torch.cat((X, torch.zeros_like(X)), -2)
    v = data.v.expand(*batch, data.d).reshape(-1, data.d).double()
    return AttentionData(X.double(), z.double(), None if y is None else y.double(), v, mask)


def _proved(
    data: AttentionData, goal: Objective, W: Tensor, chosen: Tensor, step: float
) -> Guarantee:
    """Check both theorems at W ``(B, d, d)``, for one batch dimension."""
    best = optimal_tokens(data)
    of_best, of_chosen = (
        solve(token_problem(data.X, data.z, x, data.mask)) for x in (best, chosen)
    )
    level = level_at(goal, of_best, goal.flat.logits(W))
    frame = build_frame(goal, of_chosen)
    funnel = funnel_at(frame, W, torch.full((len(W),), step, dtype=W.dtype, device=W.device))
    by_level = level.proved & (level.longest >= step)
    inner = (...,) + (None,) * (best.ndim - 1)
    selection = best.where(by_level[inner], chosen)
    by_funnel = funnel.proved & (selection == chosen).flatten(1).all(-1)
    plain = step * (-funnel.log_gradient).exp()
    longest, rate, share = (
        torch.maximum(a.where(by_level, 0.0), b.where(by_funnel, 0.0))
        for a, b in (
            (level.longest, funnel.longest),
            (level.longest / level.gradient, plain),
            (level.share, funnel.share),
        )
    )
    proved = by_level | by_funnel
    numbers = (selection, proved, by_level, by_funnel, longest, rate, share, frame.obstacle)
    return Guarantee(*numbers, of_chosen, level, funnel)


def _shaped(data: AttentionData, found: Guarantee) -> Guarantee:
    """Give results of one batch dimension the batch shape of the data."""
    batch = data.batch_shape

    def shaped(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.reshape((*batch, *x.shape[1:]))
        return replace(x, **{f.name: shaped(getattr(x, f.name)) for f in fields(x)})

    own = {f.name: shaped(getattr(found, f.name)) for f in fields(found) if f.name != "solution"}
    problem = token_problem(data.X, data.z, own["selection"], data.mask)
    return Guarantee(**own, solution=solve(problem))
