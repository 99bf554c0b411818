"""Train, and compare the result with the prediction."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import scores
from attnmargin.attention.softmax import objective, probabilities, sequences
from attnmargin.base.checks import check_kind
from attnmargin.base.display import Summarised, range_words, share_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_method
from attnmargin.prediction.prediction import Prediction
from attnmargin.selections.local_optimality import locality
from attnmargin.solvers.entry import solve
from attnmargin.theory.staying import excess_loss, staying_loss
from attnmargin.training import Trajectory, train
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
    listed: Tensor  # bool (*B,): they are among the locally optimal selections
    correlation: Tensor  # (R, *B): of the weights with the predicted direction, at the records
    own_correlation: Tensor  # (*B,): at the end, with the direction of what was selected
    settled: Tensor  # int (*B,): the step of the record since which the selection is the same
    stays: Tensor  # bool (*B,): as long as the loss does not rise, the selection stays for ever
    decided: Tensor  # bool (*B,): a token of every sequence is more likely than all others
    lr: float  # length of every step

    def summary(self) -> dict[str, str]:
        """Return whether training agrees, and how well, by name."""
        return {
            "agrees": share_words(self.agrees),
            "stays for ever": share_words(self.stays),
            "correlation": range_words(self.correlation[-1]),
            "selected since step": range_words(self.settled.double()),
            "steps": f"{self.steps:,} of length {self.lr:g}",
        }

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
        if bool(self.listed[index]):
            return f"training selects {chosen}, {self._kind(index)}"
        return f"training selects {chosen}, not a listed alternative: {self._unfinished(index)}"

    def _kind(self, index: tuple[int, ...]) -> str:
        """Say which kind of listed alternative was selected."""
        searches = self.prediction.searches
        if searches is None:
            return "the predicted mixture"
        stable = searches[index].selections.flatten(1)
        if bool((stable == self.selection[index].flatten()).all(-1).any()):
            return "a listed alternative"
        return "a degenerate alternative: the tokens that pull it away are not needed to hold it"

    def _unfinished(self, index: tuple[int, ...]) -> str:
        share = float(self.run.probability[-1][index])
        if share < _SATURATED:
            return (
                f"the softmax is not saturated, its largest entry is {share:.3g} on average; train "
                "longer, or the weights rest at a finite point"
            )
        data = self.prediction.data[index] if index else self.prediction.data
        if self.prediction.head is not None:
            return "train longer, or with smaller steps"
        found = locality(data, self.selection[index], self.prediction.norm)
        if bool(found.solution.infeasible):
            return (
                "no direction selects these tokens alone; either training is not at its end, or "
                "tokens that are equal, or have equal scores, share the attention"
            )
        if bool(found.local):
            return "it is locally optimal, and the search, which was not complete, missed it"
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
    lr: float = 0.1,
    init: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Confirmation:
    """Train with normalised steps from zero, and compare with the prediction.

    Args:
        prediction: from :func:`predict`, with any batch.
        steps, lr, init, seed: as in :func:`attnmargin.train`; by default W starts at zero, and
            (K, Q) from small random factors.
        progress: called with the number of steps done and the total.

    Returns:
        A :class:`Confirmation`: what training selected, whether that was predicted, how well
        the weights align, and when the selection settled.

    Example:
        >>> import attnmargin as am
        >>> prediction = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1))
        >>> result = am.confirm(prediction)
        >>> bool(result.agrees), bool(result.correlation[-1] > 0.99)
        (True, True)
    """
    check_kind("prediction", prediction, Prediction)
    if not isinstance(steps, int) or steps < 1:
        raise InputError("steps", f"{steps!r}", "at least one step")
    run = train(
        prediction.data,
        prediction.parameter,
        implied_method(prediction.p),
        p=prediction.p,
        lr=lr,
        steps=steps,
        loss=prediction.loss,
        head="linear" if prediction.head is None else prediction.head,
        init=init,
        record=max(steps // _RECORDS, 1),
        seed=seed,
        progress=progress,
    )
    aligned = correlation(run.W, prediction.direction.nan_to_num(nan=0.0))
    if prediction.finite is not None:
        return _of_sets(prediction, run, aligned, lr)
    selection = run.selection[-1]
    batch = len(prediction.data.batch_shape)
    clear = decided(prediction.data, run.W[-1])
    same = (selection == prediction.selection).flatten(batch).all(-1) & clear
    return Confirmation(
        prediction,
        run,
        selection,
        same,
        _listed(prediction, selection) & clear,
        aligned,
        _own(prediction, run),
        _settled(run, batch),
        same & _stays(prediction, run),
        clear,
        lr,
    )


def _listed(prediction: Prediction, selection: Tensor) -> Tensor:
    assert prediction.searches is not None
    found = [selection[index] in search for index, search in np.ndenumerate(prediction.searches)]
    listed = torch.tensor(found, dtype=torch.bool, device=selection.device)
    return listed.reshape(prediction.data.batch_shape)


def _own(prediction: Prediction, run: Trajectory) -> Tensor:
    """Correlate the last W with the SVM of what it selects; NaN where that is infeasible."""
    data = prediction.data
    solution = solve(token_problem(data.X, data.z, run.selection[-1], data.mask), prediction.norm)
    aligned = correlation(run.W[-1], solution.W.nan_to_num(nan=0.0))
    return aligned.where(solution.optimal, torch.nan)


def _settled(run: Trajectory, batch: int) -> Tensor:
    """Find the step of the record since which the selection is the same, int ``(*B,)``."""
    changed = (run.selection != run.selection[-1]).flatten(1 + batch).any(-1)
    records = torch.arange(1, len(run.steps) + 1, device=changed.device)
    records = records.reshape(-1, *[1] * batch)
    last = torch.where(changed, records, 0).amax(0)
    settled: Tensor = run.steps.to(last.device)[last]
    return settled


def _stays(prediction: Prediction, run: Trajectory) -> Tensor:
    """Decide whether the loss is too low to leave the optimal tokens, bool ``(*B,)``."""
    goal = objective(prediction.data, "linear", prediction.loss)
    if not goal.loss.always_falls:
        return torch.zeros_like(run.probability[-1], dtype=torch.bool)
    flat, d = sequences(prediction.data), prediction.data.d
    low = excess_loss(goal, flat.logits(run.W[-1].reshape(-1, d, d))) < staying_loss(goal)
    return low.reshape(prediction.data.batch_shape)


def _of_sets(prediction: Prediction, run: Trajectory, aligned: Tensor, lr: float) -> Confirmation:
    """Compare where a sequence selects several tokens."""
    assert prediction.finite is not None
    batch = len(prediction.data.batch_shape)
    chosen = probabilities(prediction.data, run.W[-1]) > _SELECTED
    same = (chosen == prediction.selection).flatten(batch).all(-1)
    finite, direction = (s.W.nan_to_num(nan=0.0) for s in (prediction.finite, prediction.solution))
    own = composed_correlation(run.W[-1], finite, direction)
    unknown, clear = torch.zeros_like(same), torch.ones_like(same)
    settled = _settled(run, batch)
    return Confirmation(
        prediction, run, chosen, same, same, aligned, own, settled, unknown, clear, lr
    )
