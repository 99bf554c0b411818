"""Problems for the methods that solve large ones: realisable, contradictory, and odd small ones."""

import numpy as np
import torch
from torch import Tensor

import attnmargin as am

KINDS = ("plain", "whole numbers", "repeated tokens", "one query", "long and short", "near",
         "masked", "sets", "few queries")  # fmt: skip


def selected(X: Tensor, z: Tensor, generator: torch.Generator) -> Tensor:
    """Select what random weights select: a feasible selection."""
    W = torch.randn(X.shape[-1], z.shape[-1], generator=generator, dtype=X.dtype)
    return torch.einsum("ntd,de,ne->nt", X, W, z).argmax(-1)


def realisable(n: int, T: int, d: int, seed: int = 0) -> am.MarginProblem:
    generator = torch.Generator().manual_seed(seed)
    X = torch.nn.functional.normalize(
        torch.randn(n, T, d, generator=generator, dtype=torch.float64), dim=-1
    )
    return am.token_problem(X, X[:, 0], selected(X, X[:, 0], generator))


def contradictory(n: int, T: int, d: int, seed: int = 0) -> am.MarginProblem:
    """Select tokens at random, far more than random weights can select."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    return am.token_problem(X, X[:, 0], torch.randint(T, (n,), generator=generator))


def drawn(kind: str, seed: int) -> am.MarginProblem:
    """Draw a small problem of some kind, feasible or not."""
    random = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    n, T, d = (int(random.integers(a, b)) for a, b in ((1, 12), (2, 9), (1, 7)))
    X = torch.from_numpy(random.normal(size=(n, T, d)))
    z = torch.from_numpy(random.normal(size=(n, d)))
    mask = None
    if kind == "whole numbers":
        X, z = X.round(), z.round()
    elif kind == "repeated tokens":
        X = X[:, random.integers(T, size=T)]
    elif kind == "one query":
        z = z[:1].expand(n, d)
    elif kind == "long and short":
        X = X * 10.0 ** torch.from_numpy(random.uniform(-3, 3, size=(n, 1, 1)))
    elif kind == "near":
        X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    elif kind == "few queries":
        z = torch.from_numpy(random.normal(size=(n, d + n)))
        left = X[:, :1] - X[:, 1:]
        return am.margin_problem(left.flatten(0, 1), z)
    free = random.random() < 0.6
    selection = selected(X, z, generator) if free else torch.from_numpy(random.integers(T, size=n))
    if kind == "masked":
        mask = torch.from_numpy(random.random((n, T)) < 0.7)
        mask[torch.arange(n), selection] = True
    if kind == "sets":
        sets = torch.nn.functional.one_hot(selection, T).bool()
        sets[:, 0] |= torch.from_numpy(random.random(n) < 0.4)
        return am.token_problem(X, z, sets)
    return am.token_problem(X, z, selection, mask)
