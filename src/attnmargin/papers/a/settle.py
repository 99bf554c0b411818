"""Training in rounds until selections settle, as figures 2, 5 and 6 of paper A require."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.attention.softmax import probabilities
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.implied import implied_norm
from attnmargin.selections.local_optimality import locality
from attnmargin.training import train

# Steps per round; after each, trials with a settled selection stop.
ROUNDS = (100, 150, 250, 500, 1000, 2000, 4000, 8000, 16000)
LONG_ROUNDS = (*ROUNDS, 32000, 64000)
# A selection counts as made if the largest softmax entry of every sequence exceeds this.
_MADE = 0.999


@final
@dataclass(frozen=True)
class Settled:
    """The final state of every trial; arrays over trials."""

    selection: NDArray[Any]  # int (trials, n)
    steps: NDArray[Any]  # int: steps taken
    least: NDArray[Any]  # smallest over sequences of the largest softmax entry
    optimal: NDArray[Any]  # bool: the optimal tokens are selected
    local: NDArray[Any]  # bool: the selection is locally optimal
    feasible: NDArray[Any]  # bool: its SVM has a solution
    marginal: NDArray[Any]  # bool: not local, but W is the same without the tokens that pull
    growth: NDArray[Any]  # ‖W‖ at the end of the last round over ‖W‖ at its beginning


def settle(
    data: AttentionData,
    parameter: str,
    init: tuple[Tensor, ...] | None = None,
    penalty: float = 0.0,
    progress: Progress | None = None,
    rounds: tuple[int, ...] = ROUNDS,
) -> Settled:
    """Train every trial until its selection is made and locally optimal, or the rounds end."""
    trials, norm = data.batch_shape[0], implied_norm(parameter)
    result: dict[str, Any] = {
        "selection": torch.zeros(trials, data.n, dtype=torch.int64),
        "steps": torch.zeros(trials, dtype=torch.int64),
        "least": torch.zeros(trials, dtype=torch.float64),
        "growth": torch.zeros(trials, dtype=torch.float64),
    }
    for name in ("optimal", "local", "feasible", "marginal"):
        result[name] = torch.zeros(trials, dtype=torch.bool)
    active, weights, done = torch.arange(trials), init, 0
    for k, steps in enumerate(rounds):
        part = data[active]
        run = train(
            part,
            parameter,
            steps=steps,
            init=weights if parameter == "KQ" or weights is None else weights[0],
            penalty=penalty,
            record=steps,
        )
        done += steps
        chosen, least = run.selection[-1], probabilities(part, run.W[-1]).amax(-1).amin(-1)
        found = locality(part, chosen, norm)
        result["selection"][active], result["steps"][active] = chosen, done
        result["least"][active] = least
        sizes = torch.linalg.matrix_norm(run.W)
        result["growth"][active] = sizes[-1] / sizes[0].where(sizes[0] > 0, torch.nan)
        result["optimal"][active] = (chosen == optimal_tokens(part)).all(-1)
        for name in ("local", "feasible", "marginal"):
            result[name][active] = getattr(found, name)
        going = ~(found.local & (least > _MADE))
        active, weights = active[going], tuple(x[going] for x in run.last)
        if progress is not None:
            progress(k + 1, len(rounds))
        if not len(active):
            break
    return Settled(**{name: np.asarray(value) for name, value in result.items()})
