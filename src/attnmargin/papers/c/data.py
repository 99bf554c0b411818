"""Random next-token data of paper C, with graphs and solutions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.heads import ScoreHead
from attnmargin.data.attention_data import AttentionData
from attnmargin.graphs import (
    TokenGraphs,
    cyclic_basis,
    cyclic_correction,
    graph_problem,
    token_graphs,
)
from attnmargin.graphs.next_token import next_token_data, next_token_head, random_next_tokens
from attnmargin.margin.solution import Solution
from attnmargin.papers.engine.experiment import Task
from attnmargin.solvers.entry import solve

# Maximum number of draws per kept instance.
_MOST = 10


@final
@dataclass(frozen=True, eq=False)
class Sizes:
    """Vocabulary size, width, number of sequences and their length."""

    K: int
    d: int
    n: int
    T: int

    def __str__(self) -> str:
        return f"K = {self.K}, d = {self.d}, n = {self.n}, T = {self.T}"


ACYCLIC, GENERAL = Sizes(8, 8, 4, 6), Sizes(6, 8, 6, 4)


@final
@dataclass(frozen=True, eq=False)
class Instances:
    """B data sets, each with its own embeddings."""

    E: Tensor  # (B, K, d)
    ids: Tensor  # (B, n, T)
    labels: Tensor  # (B, n)
    graphs: list[TokenGraphs]

    def data(self) -> AttentionData:
        """Build the tokens and queries."""
        return next_token_data(self.E, self.ids)

    def head(self) -> ScoreHead:
        """Build the head with C Eᵀ = I."""
        return next_token_head(self.E, self.ids, self.labels)

    def solution(self) -> Solution:
        """Solve for ``W_mm`` of all instances."""
        return solve(graph_problem(self.E, self.graphs))

    def corrections(self) -> Tensor:
        """Compute ``W_cyc`` of all instances, ``(B, d, d)``."""
        rows = zip(self.E, self.ids, self.labels, self.graphs, strict=True)
        return torch.stack([cyclic_correction(e, x, y, g) for e, x, y, g in rows])

    def bases(self) -> Tensor:
        """Compute orthonormal bases of the cyclic subspaces, ``(B, r, d, d)``, zero-padded."""
        return padded_bases(self.E, self.graphs)


def padded_bases(E: Tensor, graphs: list[TokenGraphs]) -> Tensor:
    """Compute orthonormal bases of cyclic subspaces, ``(B, r, d, d)``, zero-padded."""
    found = [cyclic_basis(e, g) for e, g in zip(E, graphs, strict=True)]
    d, r = E.shape[-1], max(len(basis) for basis in found)
    return torch.stack([torch.cat((x, x.new_zeros(r - len(x), d, d))) for x in found])


def projected(W: Tensor, bases: Tensor) -> Tensor:
    """Compute ``Π_cyc W`` of weights ``(…, B, d, d)``."""
    inner = torch.einsum("brde,...bde->...br", bases, W)
    return torch.einsum("...br,brde->...bde", inner, bases)


def distance(W: Tensor, bases: Tensor, target: Tensor) -> Tensor:
    """Compute ``‖Π_cyc W − W_cyc‖_F``, ``(…, B)``."""
    return torch.linalg.matrix_norm(projected(W, bases) - target)


def mixed(graphs: TokenGraphs) -> bool:
    """Test whether there is something to retrieve and something to compose."""
    return not graphs.acyclic and len(graphs.dominance[0]) > 0


def ordered(graphs: TokenGraphs) -> bool:
    """Test whether there is something to retrieve, so that W_mm is not zero."""
    return len(graphs.dominance[0]) > 0


def draw(
    name: str,
    sizes: Sizes,
    task: Task,
    wanted: Callable[[TokenGraphs], bool],
    acyclic: bool = False,
) -> Instances:
    """Draw up to ``task.trials`` instances whose graphs satisfy ``wanted``."""
    E, ids, labels = random_next_tokens(
        sizes.K, sizes.d, sizes.n, sizes.T, _MOST * task.trials, name=name, seed=task.seed,
        acyclic=acyclic,
    )  # fmt: skip
    keep: list[int] = []
    graphs: list[TokenGraphs] = []
    for k in range(len(E)):
        found = token_graphs(ids[k], labels[k], sizes.K)
        if wanted(found):
            keep.append(k)
            graphs.append(found)
        if len(keep) == task.trials:
            break
    return Instances(E[keep], ids[keep], labels[keep], graphs)
