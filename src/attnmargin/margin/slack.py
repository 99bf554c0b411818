"""Soft margins: a slack per sequence, as a private direction that its rows share."""

from dataclasses import replace

import torch

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.margin.norms import Frobenius, Lp, Norm, scaled_norm
from attnmargin.margin.problem import MarginProblem

_POSITIVE = "a number above 0, or inf for a hard margin"


def check_price(C: object, norm: Norm, argument: str = "C") -> float:
    """Return the price of slack as a float, or raise InputError unless the norm permits it."""
    price = check_number(argument, C, _POSITIVE)
    if not price > 0:
        raise InputError(argument, f"{price:g}", _POSITIVE)
    if price != torch.inf and not isinstance(norm, Frobenius | Lp):
        got = f"{price:g} with norm {norm.name!r}"
        raise InputError(argument, got, "inf, or norm 'fro' or p > 1")
    return price


def with_slack(problem: MarginProblem, norm: Norm, C: float) -> MarginProblem:
    """Add a slack per sequence to a token problem without a batch, ``(M, d)`` rows.

        min (1/p) ‖W‖_p^p + C Σ_i |ξ_i|^p   subject to   (x_iα − x_it)ᵀ W z_i ≥ 1 − ξ_i

    Write ``ξ_i = v_i · z_i / (c ‖z_i‖_q)`` with ``c = (pC)^{1/p}`` and ``1/p + 1/q = 1``. The
    shortest such ``v_i`` has ``‖v_i‖_p = c |ξ_i|``, so W with the rows ``v_1, …, v_n`` below it
    is the shortest solution of a hard-margin problem, in which token differences have n more
    entries: ``1 / (c ‖z_i‖_q)`` in column d + i. Ties of sets stay exact: W = 0 satisfies them.

    The slack of a zero query is 1 for every W; its inequalities are dropped.

    Returns:
        A problem over matrices ``(d + n, d)``.
    """
    p = norm.p if isinstance(norm, Lp) else 2.0
    length = scaled_norm(problem.query, p / (p - 1.0))[problem.names.sequence]
    zero = (length == 0) & ~problem.equality
    entry = ((p * C) ** (-1.0 / p) / length).masked_fill(zero | problem.equality, 0.0)
    private = problem.left.new_zeros(problem.M, problem.query.shape[-2])
    private.scatter_(1, problem.names.sequence[:, None], entry[:, None])
    left = torch.cat([problem.left, private], -1)
    return replace(problem, left=left, mask=problem.mask & ~zero)
