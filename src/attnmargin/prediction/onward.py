"""Follow runs on after their last step, by arc length: in steps that grow with the weights.

Near its end a run is nearly straight, and how far it must go is a matter of its length, not of the
number of its steps. Steps of 1/200 of the length of the weights cover a millionfold growth in 4,000
steps; ten times shorter ones between them let the weights calm down. They are not the steps of the
run: what is proved at the point that they reach says where the run should end, and which norm it
needs.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attnmargin.data.attention_data import AttentionData
from attnmargin.prediction.course import Course

# Steps of a phase, in which weights may grow to twice their length, and how many phases.
_STEPS, _PHASES = 200, 20
# After them, steps of a tenth of their length.
_SHORT, _TENTH = 100, 0.1
# Shorter steps are not worth taking, wherever the weights are.
_LEAST = 1e-3

Parts = tuple[Tensor, ...]


def follow_on(
    data: AttentionData, course: Course, last: Parts, proved: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Take long steps until a theorem holds.

    Args:
        data: batch ``(B,)``.
        course: the runs.
        last: where they are, W or K and Q.
        proved: ``(rows, W) → bool``, whether a theorem holds at W of some of them.

    Returns:
        The points ``(B, d, d)``, float64, and where a theorem holds there, bool ``(B,)``.
    """
    parts = tuple(part.clone() for part in last)
    W = torch.zeros(len(parts[0]), data.d, data.d, dtype=torch.float64)
    found = torch.zeros(len(W), dtype=torch.bool)
    live = torch.arange(len(W))
    for _ in range(_PHASES):
        own = tuple(part[live] for part in parts)
        length = course.way(tuple(map(torch.zeros_like, own)), own) / _STEPS
        onward = replace(course[live], lr=length.clamp_min(_LEAST), normalize=True)
        run = onward.train(data[live], _STEPS, _STEPS, own)
        onward = replace(onward, lr=_TENTH * onward.lr)
        run = onward.train(data[live], _SHORT, _SHORT, run.last)
        for whole, part in zip(parts, run.last, strict=True):
            whole[live] = part
        W[live] = run.W[-1].double()
        found[live] = proved(live, W[live])
        live = live[~found[live]]
        if len(live) == 0:
            break
    return W, found
