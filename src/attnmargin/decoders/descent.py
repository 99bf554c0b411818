"""Training of a linear decoder: gradient descent, and gradient flow past the end of its digits."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from torch import Tensor

from attnmargin.base.checks import check_number, check_whole
from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.decoders.contexts import NextWords
from attnmargin.decoders.finite import flattened
from attnmargin.decoders.path import Flow
from attnmargin.decoders.subspace import Inside, inside

# Logarithm of a time at which the flow has hardly begun.
_EARLY = -5.0


@final
@dataclass(frozen=True, eq=False)
class DecoderRun:
    """Recorded decoders: W in two parts that add up to it."""

    at: Tensor  # (R,), the number of steps of descent, or the logarithm of the time of flow
    finite: Tensor  # (R, *B, V, d), the part inside the span of words that follow
    growing: Tensor  # (R, *B, V, d), the part orthogonal to it
    loss: Tensor  # (R, *B)

    @property
    def W(self) -> Tensor:
        """The decoders, ``(R, *B, V, d)``."""
        return self.finite + self.growing


def largest_rate(data: NextWords) -> Tensor:
    """Compute 1/L, the largest rate of descent that is certain to lower the loss, ``(*B,)``.

    ``L = ½ ‖Σ_j weight_j h_j h_jᵀ‖``: the Hessian of the softmax is at most one half.
    """
    scaled = data.contexts * data.weight.sqrt().unsqueeze(-1)
    return 2.0 / torch.linalg.matrix_norm(scaled, 2) ** 2


@one_thread
def descend(data: NextWords, steps: int, lr: float | None = None, record: int = 1) -> DecoderRun:
    """Train by plain gradient descent on the cross-entropy, from zero.

    W moves like the logarithm of the number of steps once the loss is near the entropy.

    Args:
        lr: the rate; 1/L by default, see :func:`largest_rate`.
        record: number of steps between records; the last step is always recorded.

    Example:
        >>> import attnmargin as am
        >>> data = am.decoders.random_next_words(4, 6, 8, 3)
        >>> run = am.decoders.descend(data, 2000, record=1000)
        >>> bool(run.loss[-1] - data.entropy < 0.01), run.at.tolist()
        (True, [0, 1000, 2000])
    """
    check_whole(steps=steps, record=record)
    flat = flattened(data)
    needs = "a positive number"
    rates = (
        largest_rate(flat) if lr is None else flat.weight.new_tensor(check_number("lr", lr, needs))
    )
    if not bool((rates > 0).all()):
        raise InputError("lr", f"{lr!r}", needs)
    rate = rates.expand(len(flat.contexts))[:, None, None]
    W = flat.contexts.new_zeros(len(rate), flat.V, flat.contexts.shape[-1])
    kept, moments = [W], [0]
    for k in range(1, steps + 1):
        W = W - rate * flat.gradient(W)
        if k % record == 0 or k == steps:
            kept.append(W)
            moments.append(k)
    return _recorded(data, flat, inside(flat), (torch.tensor(moments), torch.stack(kept)))


def _recorded(
    data: NextWords, flat: NextWords, span: Inside, rows: tuple[Tensor, Tensor]
) -> DecoderRun:
    moments, W = rows
    finite = span.part(W)
    shape = (len(W), *data.batch_shape)
    loss = flat.loss(W).reshape(shape)
    whole, inner = (x.reshape(*shape, *W.shape[-2:]) for x in (W, finite))
    return DecoderRun(moments, inner, whole - inner, loss)


@one_thread
def flow(
    data: NextWords,
    log_times: float | Sequence[float] = 300.0,
    *,
    stride: float = 0.5,
    progress: Progress | None = None,
) -> DecoderRun:
    """Follow gradient flow ``dW/dt = −∇L(W)`` on the cross-entropy, from zero.

    Gradient flow is the limit of gradient descent for short steps, with ``t = lr · k`` after k
    steps. W grows like log t, so a digit of its direction costs descent ten times the digits of k;
    here times grow by a constant factor from step to step.

    Let F be the span of ``(e_z − e_z′) h_jᵀ`` over words z, z′ that follow context j, and
    ``ρ_jv`` the part of ``(e_z − e_v) h_jᵀ`` orthogonal to F, v a word that does not follow. Then
    ``W = U + N`` with U in F and ``N = Σ β_jv ρ_jv``, and −∇L is ``Σ weight_j q_jv ρ_jv`` outside
    of F: no probabilities but those q of words that do not follow, which are exact in the log
    domain. Each step is linearly implicit in U and in N, of first order, and
    shorter where the pull would rise.

    Args:
        log_times: logarithms of the times to record, rising.
        stride: largest logarithm of the factor from one time to the next.
        progress: called at every record with the number of records made and of all.

    Returns:
        A run with a record per time.

    Example:
        >>> import attnmargin as am
        >>> data = am.decoders.random_next_words(4, 6, 8, 3)
        >>> run = am.decoders.flow(data)
        >>> bool((run.finite[-1] - am.decoders.finite_part(data).W).norm() < 1e-9)
        True
        >>> bool(am.correlation(run.growing[-1], am.solve(data.problem).W) > 0.999)
        True
    """
    times = [float(t) for t in ([log_times] if isinstance(log_times, int | float) else log_times)]
    if not times or not all(a < b for a, b in pairwise([_EARLY, *times, float("inf")])):
        raise InputError("log_times", f"{times}", f"finite rising numbers above {_EARLY:g}")
    flat = flattened(data)
    path, kept = Flow(flat, check_number("stride", stride, "a positive number")), []
    for k, time in enumerate(times):
        path.advance(time)
        kept.append(path.W)
        if progress is not None:
            progress(k + 1, len(times))
    return _recorded(data, flat, path.span, (torch.tensor(times).double(), torch.stack(kept)))
