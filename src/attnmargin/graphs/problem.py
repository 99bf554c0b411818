"""Graph-SVM: the margin problem of token-priority graphs."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.arrays import Array
from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.data.embeddings import embedding_table
from attnmargin.graphs.collection import TokenGraphs
from attnmargin.margin.problem import LAST_TOKEN, MarginProblem, RowNames


def check_graphs(graphs: object) -> TokenGraphs:
    """Raise InputError unless ``graphs`` is a TokenGraphs."""
    if not isinstance(graphs, TokenGraphs):
        raise InputError("graphs", f"a {type(graphs).__name__}", "TokenGraphs")
    return graphs


def graph_problem(E: Array, graphs: TokenGraphs | Sequence[TokenGraphs]) -> MarginProblem:
    """Build Graph-SVM: higher-priority components win by margin one; tokens inside one tie.

        (e_i − e_j)ᵀ W e_k ≥ 1   for (i ⇒ j) in the graph of k
        (e_i − e_j)ᵀ W e_k = 0   for (i ≍ j) in the graph of k          (paper C, Graph-SVM)

    Without cycles this is (Acyc-SVM). The equalities compare the first token of a component with
    each other token, which implies the rest.

    Args:
        E: embeddings ``(*B, K, d)``.
        graphs: graphs of one data set, shared by the batch; or B of them, one per embedding table.

    Returns:
        A problem over W ``(d, d)``; its solution is the ``W_mm`` of Theorems 1 to 3.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([[0, 1]], [0], 2)
        >>> solution = am.solve(am.graph_problem([[1.0, 0.0], [0.0, 1.0]], graphs))
        >>> solution.W.round(decimals=9).tolist()
        [[0.0, 0.5], [0.0, -0.5]]
    """
    if isinstance(graphs, TokenGraphs):
        rows = _rows(graphs)
        return _problem(embedding_table(E, graphs.K), *(torch.from_numpy(x) for x in rows))
    several = isinstance(graphs, list | tuple) and len(graphs) > 0
    if not several or not all(isinstance(member, TokenGraphs) for member in graphs):
        raise InputError("graphs", f"a {type(graphs).__name__}", "TokenGraphs, or a list of them")
    sizes = sorted({member.K for member in graphs})
    if len(sizes) > 1:
        raise InputError("graphs", f"vocabularies of {sizes} tokens", "graphs of one vocabulary")
    table = embedding_table(E, sizes[0])
    if table.shape[:-2] != (len(graphs),):
        got = f"embeddings of batch {tuple(table.shape[:-2])}"
        raise InputError("E", got, f"{counted(len(graphs), 'table')}, one for each graph")
    return _problem(table, *_padded([_rows(member) for member in graphs]))


Rows = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]


def _rows(graphs: TokenGraphs) -> Rows:
    """Return rows (i, j, k) ``(M, 3)``, which of them are equalities, and which exist."""
    strict, level = (np.stack(x, -1) for x in (graphs.dominance, graphs.equality))
    equal = np.arange(len(strict) + len(level)) >= len(strict)
    return np.concatenate((strict, level)), equal, np.ones_like(equal)


def _padded(members: list[Rows]) -> list[Tensor]:
    """Pad the rows of several graphs to the same number."""
    M = max(len(rows[1]) for rows in members)
    return [
        torch.from_numpy(
            np.stack([np.pad(x, [(0, M - len(x))] + [(0, 0)] * (x.ndim - 1)) for x in parts])
        )
        for parts in zip(*members, strict=True)
    ]


def _problem(E: Tensor, rows: Tensor, equal: Tensor, exists: Tensor) -> MarginProblem:
    rows, equal, exists = (x.to(E.device) for x in (rows, equal, exists))
    batch, d = E.shape[:-2], E.shape[-1]
    i, j, k = (x.expand(*batch, x.shape[-1]) for x in rows.unbind(-1))
    shape = i.shape
    pick = [E.take_along_dim(x.unsqueeze(-1).expand(*shape, d), -2) for x in (i, j, k)]
    query = pick[2] if shape[-1] else E.new_zeros(*batch, 1, d)
    return MarginProblem(
        pick[0] - pick[1],
        query,
        (~equal).to(E.dtype).expand(shape),
        equal.expand(shape),
        exists.expand(shape),
        RowNames(k, torch.full_like(k, LAST_TOKEN), i, j),
    )
