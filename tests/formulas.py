"""Second implementations, written from the papers' formulas."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.tokens.models import TokenModel


def shortest(rows: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """min ‖w‖ subject to rows w ≥ 1, by Lawson and Hanson's reduction to NNLS."""
    E = np.concatenate([rows.T, np.ones((1, len(rows)))])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, size = nnls(E, f, maxiter=10_000)
    if size < 1e-7:
        return None
    r = E @ u - f
    return -r[:-1] / r[-1]


def brute_force(data: am.AttentionData, selection: tuple[int, ...]) -> bool:
    """Definition 2, row by row, in plain numpy."""
    assert data.y is not None
    assert data.v is not None
    X, z, y, v = data.X.numpy(), data.z.numpy(), data.y.numpy(), data.v.numpy()
    pairs = [(i, t) for i in range(data.n) for t in range(data.T) if t != selection[i]]
    rows = np.array([np.outer(X[i, selection[i]] - X[i, t], z[i]).ravel() for i, t in pairs])
    w = shortest(rows)
    if w is None:
        return False
    for (i, t), row in zip(pairs, rows, strict=True):
        tight = abs(row @ w - 1.0) < 1e-7
        if tight and not y[i] * (X[i, selection[i]] @ v) > y[i] * (X[i, t] @ v):
            return False
    return True


def written_out(model: TokenModel, ids: list[int]) -> torch.Tensor:
    """f of one sequence, by the formulas of the paper."""
    x = model.E[ids]
    if model.layers == 2:
        x = F.layer_norm(torch.softmax(x @ x.T, -1) @ x + x, x.shape[-1:])
        if model.scale is not None and model.shift is not None:
            x = x * model.scale + model.shift
    return torch.softmax(x @ model.p, 0) @ (x @ model.v)


def plain_gradient(data: am.AttentionData, W: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """∇_W L and ∇_v L of one trial by autograd on the papers' formula."""
    W, v = W.clone().requires_grad_(), v.clone().requires_grad_()
    s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.z), -1)
    u = data.y * torch.einsum("nt,ntd,d->n", s, data.X, v)
    loss = torch.log(1 + torch.exp(-u)).mean()
    of_W, of_v = torch.autograd.grad(loss, (W, v))
    return of_W, of_v
