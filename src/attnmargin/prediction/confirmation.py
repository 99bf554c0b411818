"""Train, and compare the result with the prediction."""

from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.attention.score import scores
from attnmargin.attention.softmax import probabilities
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind
from attnmargin.base.display import Summarised, range_words, share_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import token_problem
from attnmargin.prediction.course import GIVEN, Course, plan
from attnmargin.prediction.plain import PlainRun, plain_run
from attnmargin.prediction.prediction import Prediction
from attnmargin.selections.local_optimality import locality
from attnmargin.solvers.entry import solve
from attnmargin.theory.guarantees.case import build_case
from attnmargin.theory.staying import excess_loss, staying_loss
from attnmargin.training import Trajectory
from attnmargin.training.measures import composed_correlation, correlation, decided

# Records of a run, and the softmax entry above which a token of a mixture counts as selected.
_RECORDS, _SELECTED = 400, 1e-3
# Mean of the largest softmax entries above which the softmax counts as saturated.
_SATURATED = 0.99


@final
@dataclass(frozen=True, eq=False, repr=False)
class Confirmation(Summarised):
    """A training run compared with its prediction; tensors have the batch shape."""

    prediction: Prediction
    run: Trajectory
    selection: Tensor  # int (*B, n): the most likely tokens at the end; bool sets (*B, n, T)
    agrees: Tensor  # bool (*B,): they are the predicted ones
    correlation: Tensor  # (R, *B): of the weights with the predicted direction, at the records
    own_correlation: Tensor  # (*B,): at the end, with the direction of what was selected
    settled: Tensor  # int (*B,): the step of the record since which the selection is the same
    stays: Tensor  # bool (*B,): as long as the loss does not rise, the selection stays for ever
    decided: Tensor  # bool (*B,): a token of every sequence is more likely than all others
    course: Course  # the run
    plain: PlainRun | None  # the opinion of plain torch; None for heads that mix tokens

    def summary(self) -> dict[str, str]:
        """Return whether training agrees, and how well, by name."""
        return {
            "agrees": share_words(self.agrees),
            "plain torch": "–" if self.plain is None else self._plain_words(self.plain),
            "stays for ever": share_words(self.stays),
            "correlation": range_words(self.correlation[-1]),
            "selected since step": range_words(self.settled.double()),
            "steps": f"{self.steps:,}, {self.course.pace()}",
        }

    def _plain_words(self, plain: PlainRun) -> str:
        until = range_words(plain.steps.double())
        return f"{share_words(plain.agrees)}, exact until step {until}"

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.run.steps[-1])

    def explain(self, index: tuple[int, ...] = ()) -> str:
        """Say where the training of one instance ended, and why that may not be final."""
        if bool(self.agrees[index]):
            return "training selects the predicted tokens"
        if not bool(self.decided[index]):
            length = float(self.run.W[-1][index].norm())
            return (
                "training selects nothing: in some sequence the most likely tokens are equally "
                f"likely; the weights, of length {length:.3g}, stopped moving, or these tokens tie"
            )
        chosen = self.selection[index].tolist()
        return f"training selects {chosen} so far: {self._unfinished(index)}"

    def _unfinished(self, index: tuple[int, ...]) -> str:
        share = float(self.run.probability[-1][index])
        if share < _SATURATED:
            return (
                f"the softmax is not saturated, its largest entry is {share:.3g} on average; train "
                "longer, or the weights rest at a finite point"
            )
        data = self.prediction.data[index] if index else self.prediction.data
        data = merge_copies(data).data
        if self.prediction.head is not None:
            return "train longer, or with smaller steps"
        found = locality(data, self.selection[index], self.prediction.norm)
        if bool(found.solution.infeasible):
            return (
                "no direction selects these tokens alone; either training is not at its end, or "
                "tokens that are equal, or have equal scores, share the attention"
            )
        if bool(found.local):
            return "it is locally optimal; train longer, or from the start of the prediction"
        *where, token = found.pull.nonzero()[0].tolist()
        own = int(self.selection[index][tuple(where)])
        gamma = scores(data)[tuple(where)]
        return (
            f"in sequence {where[0]} the support token {token} scores {float(gamma[token]):.4g}, "
            f"more than the {float(gamma[own]):.4g} of token {own}, and pulls it away; train longer"
        )


def confirm(
    prediction: Prediction,
    *,
    steps: int = 4000,
    lr: Array | None = None,
    init: Any = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Confirmation:
    """Take the steps of a run, and compare with its prediction, and with plain torch.

    Args:
        prediction: from :func:`predict`, with any batch.
        steps: how many steps to take.
        lr, init, seed: as in :func:`predict`; by default those of the prediction.
        progress: called with the number of steps done and the total.

    Returns:
        A :class:`Confirmation`: what training selected, whether that was predicted, how well
        the weights align, when the selection settled, and for how many steps an independent run of
        plain torch is exact and says the same.

    Example:
        >>> import attnmargin as am
        >>> prediction = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1))
        >>> result = am.confirm(prediction)
        >>> bool(result.agrees), bool(result.correlation[-1] > 0.99), bool(result.plain.agrees)
        (True, True, True)
    """
    check_kind("prediction", prediction, Prediction)
    if not isinstance(steps, int) or steps < 1:
        raise InputError("steps", f"{steps!r}", "at least one step")
    course = _course(prediction, lr, init, seed)
    head = "linear" if prediction.head is None else prediction.head
    record = max(steps // _RECORDS, 1)
    run = course.train(prediction.data, steps, record, head=head, progress=progress)
    aligned = correlation(run.W, prediction.direction.nan_to_num(nan=0.0))
    if prediction.finite is not None:
        return _of_sets(prediction, run, aligned, course)
    selection = _first_of_equal(prediction, run)
    batch = len(prediction.data.batch_shape)
    clear = _clear(prediction, run.W[-1])
    if prediction.selection.dtype == torch.bool:  # tied tokens are selected together
        clear = torch.ones_like(clear)
    own = prediction.chosen.gather(-1, selection[-1].unsqueeze(-1))
    same = own.flatten(batch).all(-1) & clear
    return Confirmation(
        prediction,
        run,
        selection[-1],
        same,
        aligned,
        _own(prediction, run, selection[-1]),
        _settled(run, selection, batch),
        same & _stays(prediction, run),
        clear,
        course,
        plain_run(prediction.data, course, run),
    )


def _course(prediction: Prediction, lr: Array | None, init: Any, seed: int | None) -> Course:
    """The run of the prediction, with what is asked for instead."""
    own, device = prediction.course, prediction.data.X.device
    first: Any = None if own.init is None else tuple(part.to(device) for part in own.init)
    if seed is not None and own.start != GIVEN:  # drawn again
        first = None if own.init is None else "random"
    options = {
        "init": first if init is None else init,
        "lr": own.lr if lr is None else lr,
        "normalize": own.normalize,
        "method": own.settings,
        "norm": None,
        "steps": own.steps,
        "seed": own.seed if seed is None else seed,
    }
    data, course = plan(prediction.data, (own.parameter, own.p, own.loss), options)
    if data.batch_shape != prediction.data.batch_shape:
        got = f"a batch {tuple(data.batch_shape)} with lr and init"
        raise InputError("lr", got, f"the batch of the prediction, {prediction.data.batch_shape}")
    return course if init is not None else replace(course, start=own.start)


def _first_of_equal(prediction: Prediction, run: Trajectory) -> Tensor:
    """The most likely tokens, of equal ones the first, int ``(R, *B, n)``."""
    case, d = build_case(prediction.data, prediction.loss), prediction.data.d
    if not bool(case.log_count.any()):
        return run.selection
    chosen = [case.selected(case.logits(W.reshape(-1, d, d).double())) for W in run.W]
    return torch.stack(chosen).reshape(run.selection.shape)


def _clear(prediction: Prediction, W: Tensor) -> Tensor:
    """Whether a token of every sequence, with its copies, is more likely than all others."""
    return decided(merge_copies(prediction.data).data, W)


def _own(prediction: Prediction, run: Trajectory, selection: Tensor) -> Tensor:
    """Correlate the last W with the SVM of what it selects; NaN where that is infeasible."""
    data = merge_copies(prediction.data).data
    solution = solve(token_problem(data.X, data.z, selection, data.mask), prediction.norm)
    aligned = correlation(run.W[-1], solution.W.nan_to_num(nan=0.0))
    return aligned.where(solution.optimal, torch.nan)


def _settled(run: Trajectory, selection: Tensor, batch: int) -> Tensor:
    """Find the step of the record since which the selection is the same, int ``(*B,)``."""
    changed = (selection != selection[-1]).flatten(1 + batch).any(-1)
    records = torch.arange(1, len(run.steps) + 1, device=changed.device)
    records = records.reshape(-1, *[1] * batch)
    last = torch.where(changed, records, 0).amax(0)
    settled: Tensor = run.steps.to(last.device)[last]
    return settled


def _stays(prediction: Prediction, run: Trajectory) -> Tensor:
    """Decide whether the loss is too low to leave the optimal tokens, bool ``(*B,)``."""
    case, d = build_case(prediction.data, prediction.loss), prediction.data.d
    if not case.goal.loss.always_falls:
        return torch.zeros_like(run.probability[-1], dtype=torch.bool)
    logits = case.logits(run.W[-1].reshape(-1, d, d).double())
    low = excess_loss(case.goal, logits) < staying_loss(case.goal)
    return low.reshape(prediction.data.batch_shape)


def _of_sets(
    prediction: Prediction, run: Trajectory, aligned: Tensor, course: Course
) -> Confirmation:
    """Compare where a sequence selects several tokens."""
    assert prediction.finite is not None
    batch = len(prediction.data.batch_shape)
    chosen = probabilities(prediction.data, run.W[-1]) > _SELECTED
    same = (chosen == prediction.selection).flatten(batch).all(-1)
    finite, direction = (s.W.nan_to_num(nan=0.0) for s in (prediction.finite, prediction.solution))
    own = composed_correlation(run.W[-1], finite, direction)
    unknown, clear = torch.zeros_like(same), torch.ones_like(same)
    settled = _settled(run, run.selection, batch)
    return Confirmation(
        prediction, run, chosen, same, aligned, own, settled, unknown, clear, course, None
    )
