"""The multiclass hard-margin SVM: rows of a linear classifier."""

import torch

from attnmargin.base.arrays import Array, broadcast, finite, floats, integers
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.margin.problem import EXAMPLE, MarginProblem, RowNames


def class_problem(features: Array, labels: Array, classes: int | None = None) -> MarginProblem:
    """Build the multiclass hard-margin SVM of features and labels.

        (e_y − e_c)ᵀ W x ≥ 1   for every example (x, y) and every other class c

    In attention's words, the classes are the tokens, and the features the query. Normalised
    steepest descent on the cross-entropy of a linear classifier maximises this margin in its norm
    (Fan, Schmidt and Thrampoulidis, 2502.04664).

    Args:
        features: ``(*B, n, d)``.
        labels: int ``(*B, n)``, counted from 0.
        classes: their number k; by default the largest label plus one.

    Returns:
        A problem over W of shape ``(k, d)`` with ``n (k − 1)`` rows.

    Example:
        >>> import attnmargin as am
        >>> problem = am.class_problem([[2.0, 0.0], [0.0, 2.0]], [0, 1])
        >>> am.solve(problem).W.round(decimals=9).tolist()
        [[0.25, -0.25], [-0.25, 0.25]]
    """
    x = finite("features", floats("features", features))
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise InputError("features", f"shape {tuple(x.shape)}", "(*B, n, d)")
    y = integers("labels", labels, x)
    if y.ndim == 0 or y.shape[-1] != x.shape[-2]:
        needs = f"one label per example, (*B, {x.shape[-2]})"
        raise InputError("labels", f"shape {tuple(y.shape)}", needs)
    k = int(y.max()) + 1 if classes is None else classes
    check_whole(2, classes=k)
    if bool(((y < 0) | (y >= k)).any()):
        got = f"labels from {int(y.min())} to {int(y.max())}"
        raise InputError("labels", got, f"labels from 0 to {k - 1}")
    batch = broadcast({"features": x.shape[:-2], "labels": y.shape[:-1]})
    x, y = x.expand(*batch, *x.shape[-2:]), y.expand(*batch, y.shape[-1])
    rank = torch.arange(k - 1, device=x.device)
    other = rank + (rank >= y.unsqueeze(-1))  # (*B, n, k − 1)
    unit = torch.eye(k, dtype=x.dtype, device=x.device)
    left = (unit[y].unsqueeze(-2) - unit[other]).flatten(-3, -2)
    rows = torch.ones(left.shape[:-1], dtype=torch.bool, device=x.device)
    example = torch.arange(y.shape[-1], device=x.device).repeat_interleave(k - 1)
    names = RowNames(
        example,
        torch.full_like(example, EXAMPLE),
        y.repeat_interleave(k - 1, dim=-1),
        other.flatten(-2),
    )
    return MarginProblem(left, x, rows.to(x.dtype), ~rows, rows, names)
