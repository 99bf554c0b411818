"""Prompt attention: ``softmax(X W_key p)`` with a trained vector p (2306.13596)."""

from dataclasses import replace

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData, check_tokens
from attnmargin.margin.builders import token_problem
from attnmargin.margin.problem import MarginProblem


def prompt_data(X: Array, W_key: Array, y: Array, v: Array) -> AttentionData:
    """Write prompt attention as data of attention weights.

    The head ``vᵀ Xᵀ softmax(X W_key p)`` is that of keys ``k = W_keyᵀ x`` with the head
    ``W_key⁻¹ v`` and the query ``e_1``: p is the first column of W, and the others never move.

    Args:
        X: tokens ``(*B, n, T, d)``.
        W_key: ``(d, d)``, invertible.

    Example:
        >>> import attnmargin as am
        >>> data = prompt_data([[[1.0, 0.0], [0.0, 1.0]]], [[2.0, 0.0], [0.0, 1.0]], [1], [1, -1])
        >>> am.train(data, lr=1.0, steps=3, record=3).W[-1, :, 0].round(decimals=3).tolist()
        [2.683, -1.342]
    """
    X, mask = check_tokens(X, None)
    key = finite("W_key", floats("W_key", W_key)).to(X)
    if key.shape != (X.shape[-1], X.shape[-1]) or not bool(
        torch.linalg.matrix_rank(key) == len(key)
    ):
        got = f"shape {tuple(key.shape)}, or a matrix without an inverse"
        raise InputError("W_key", got, f"an invertible matrix ({X.shape[-1]}, {X.shape[-1]})")
    head = finite("v", floats("v", v)).to(X)
    z = torch.zeros(*X.shape[:-2], X.shape[-1], dtype=X.dtype, device=X.device)
    z[..., 0] = 1.0
    return AttentionData(
        X @ key, z, y, torch.linalg.solve(key, head.unsqueeze(-1)).squeeze(-1), mask
    )


def prompt_problem(
    keys: Array, selection: Array, needed: Tensor | None = None, mask: Array | None = None
) -> MarginProblem:
    """Build the SVM of p, or the relaxed one of joint training.

        (k_iα − k_it)ᵀ p ≥ 1 for needed sequences i, ≥ 0 for the others

    When head and p are trained together, sequences that do not support the margin of the head
    need not be separated.

    Args:
        keys: ``X W_key``, ``(*B, n, T, d)``.
        selection: int ``(*B, n)``.
        needed: bool ``(*B, n)``, such as ``am.solve(label_problem(…)).support``; all by default.

    Returns:
        A problem over ``p``, as a matrix ``(d, 1)``.

    Example:
        >>> import attnmargin as am
        >>> keys = [[[2.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]
        >>> am.solve(prompt_problem(keys, [0, 0])).W[:, 0].tolist()
        [0.5, 1.0]
        >>> am.solve(prompt_problem(keys, [0, 0], torch.tensor([True, False]))).W[:, 0].tolist()
        [0.5, 0.0]
    """
    X, visible = check_tokens(keys, mask)
    z = torch.zeros(*X.shape[:-2], X.shape[-1], dtype=X.dtype, device=X.device)
    problem = token_problem(X, z, selection, visible)
    bound = problem.bound
    if needed is not None:
        if needed.dtype != torch.bool or needed.shape[-1:] != X.shape[-3:-2]:
            got = f"{needed.dtype} of shape {tuple(needed.shape)}"
            raise InputError("needed", got, f"bool (*B, {X.shape[-3]})")
        rows = problem.M // X.shape[-3]
        bound = bound * needed.repeat_interleave(rows, dim=-1)
    query = torch.ones(*problem.batch_shape, 1, 1, dtype=X.dtype, device=X.device)
    return replace(problem, query=query, bound=bound)
