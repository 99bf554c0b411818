"""Courses of runs: distance to the max-margin direction, length, and what is not yet one-hot."""

from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.papers.engine.experiment import Arrays
from attnmargin.solvers.entry import solve
from attnmargin.training import Trajectory

_BLOCK = 100  # records whose logits are held at a time


def course_of(data: AttentionData, run: Trajectory) -> Arrays:
    """Compare every record of a run with the SVM of what it selects at the end.

    Returns:
        ``steps`` (R,); ``distance`` ‖W/‖W‖ − W_mm/‖W_mm‖‖_F, ``length`` ‖W‖_F and ``spread``, the
        logarithm of 1 − (probability of the selected token) of the slowest sequence, (R, trials);
        ``margin`` 1/‖W_mm‖_F and ``feasible``, (trials,).
    """
    kept = run.steps > 0
    selection = run.selection[-1]
    solution = solve(token_problem(data.X, data.z, selection, data.mask))
    W = run.W[kept]
    length = torch.linalg.matrix_norm(W)
    best = solution.W * solution.margin[:, None, None]
    distance = torch.linalg.matrix_norm(W / length[..., None, None] - best)
    spread = torch.cat([log_spread(data, part, selection) for part in W.split(_BLOCK)])
    return {
        "steps": run.steps[kept].numpy(),
        "distance": distance.numpy(),
        "length": length.numpy(),
        "spread": spread.numpy(),
        "margin": solution.margin.numpy(),
        "feasible": solution.optimal.numpy(),
    }


def log_spread(data: AttentionData, W: Tensor, selection: Tensor) -> Tensor:
    """Compute ``max_i log(1 − s_i)``, with s_i the probability of the selected token, exactly.

    With the logits a of a sequence and ``l = log Σ_{t ≠ selected} e^{a_t − a_selected}`` it is
    ``l − log(1 + e^l)``: no digit is lost when s_i rounds to one.

    Args:
        W: ``(R, *B, d, d)``.
        selection: ``(*B, n)``.
    """
    logits = (data.X @ (W @ data.z.mT).mT.unsqueeze(-1)).squeeze(-1)
    own = torch.nn.functional.one_hot(selection, data.T).bool().expand(logits.shape)
    gaps = logits - logits.masked_fill(~own, 0.0).sum(-1, keepdim=True)
    rest = gaps.masked_fill(own, -torch.inf).logsumexp(-1)
    return (rest - torch.nn.functional.softplus(rest)).amax(-1)


@final
class Fit:
    """Exponents: slopes of straight lines through the later half of records, trial by trial."""

    def __init__(self, arrays: Arrays) -> None:
        later = arrays["steps"] >= arrays["steps"][-1] / 10
        self.arrays = arrays
        self._trials = arrays["feasible"]
        self._later = later

    def of(self, name: str) -> NDArray[Any]:
        """Return what was recorded later, ``(R', trials)``."""
        own: NDArray[Any] = self.arrays[name][self._later]
        return own if own.ndim == 1 else own[:, self._trials]

    def against_steps(self) -> NDArray[Any]:
        """Return e of ``distance ~ steps^e``."""
        return slopes(np.log(self.of("steps"))[:, None], np.log(self.of("distance")))

    def against_length(self) -> NDArray[Any]:
        """Return e of ``distance ~ ‖W‖^e``; a bounded finite part means −1."""
        return slopes(np.log(self.of("length")), np.log(self.of("distance")))

    def sparsity(self) -> NDArray[Any]:
        """Return c of ``1 − s ~ e^{−c ‖W‖/‖W_mm‖}``; 1 in the direction of W_mm."""
        margin = self.arrays["margin"][self._trials]
        return -slopes(self.of("length") * margin, self.of("spread"))

    def sparsity_against_steps(self) -> NDArray[Any]:
        """Return e of ``1 − s ~ steps^e``."""
        return slopes(np.log(self.of("steps"))[:, None], self.of("spread"))

    def speed(self) -> NDArray[Any]:
        """Return a of ``1 − s ~ e^{−c steps^a}``."""
        return slopes(np.log(self.of("steps"))[:, None], np.log(-self.of("spread")))


def slopes(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Fit ``y = a + b x`` by least squares along the first axis; return b.

    >>> slopes(np.arange(4.0)[:, None], 3.0 - 2.0 * np.arange(4.0)[:, None]).round(9)
    array([-2.])
    """
    x = x - x.mean(0)
    found: NDArray[Any] = (x * (y - y.mean(0))).sum(0) / (x * x).sum(0)
    return found
