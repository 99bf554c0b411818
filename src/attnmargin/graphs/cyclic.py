"""Cyclic data, the cyclic subspace, and the finite part of the weights (paper C, Section 4.2)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from attnmargin.attention.losses import Log, Loss, as_loss
from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.errors import InputError
from attnmargin.base.ragged import rows_of, starts_of
from attnmargin.data.embeddings import embedding_table
from attnmargin.graphs.collection import TokenGraphs
from attnmargin.graphs.composition import composition
from attnmargin.graphs.newton import Choices, gathered, minimum
from attnmargin.graphs.problem import check_graphs
from attnmargin.graphs.samples import Samples, as_samples

# A unit row depends on the others if its squared distance from their span is below this.
_RANK = 1e-12


@final
@dataclass(frozen=True, eq=False, repr=False)
class CyclicData:
    """The cyclic sub-data: sequences without the tokens that their label dominates."""

    index: NDArray[np.int64]  # (m,) indices of the samples that have a choice
    sequences: list[list[int]]  # their tokens in the component of the label
    labels: NDArray[np.int64]  # (m,)
    last: NDArray[np.int64]  # (m,) the query, which may itself be among the removed tokens

    def __repr__(self) -> str:
        return f"CyclicData({len(self.index)} samples with a choice)"


def cyclic_data(sequences: Any, labels: Any, graphs: TokenGraphs) -> CyclicData:
    """Extract the samples in which attention must compose (paper C, Definition 1 and eq. 5).

    Each sequence keeps the tokens in the component of its label. Samples whose remaining tokens
    are all the same have nothing to compose and are dropped.

    Example:
        >>> import attnmargin as am
        >>> sequences, labels = [[0, 1, 2], [1, 0, 2], [3, 2]], [0, 1, 3]
        >>> data = am.graphs.cyclic_data(sequences, labels, am.token_graphs(sequences, labels, 4))
        >>> data.index.tolist(), data.sequences
        ([0, 1], [[0, 1], [1, 0]])
    """
    samples = as_samples(sequences, labels, check_graphs(graphs).vocabulary)
    inside, composed = component_tokens(samples, graphs)
    owner, index = samples.owner, composed.nonzero()[0]
    kept = inside & composed[owner]
    start = starts_of(np.bincount(owner[kept], minlength=samples.n)[index])
    parts = rows_of(samples.tokens[kept], start)
    return CyclicData(
        index, [part.tolist() for part in parts], samples.labels[index], samples.last[index]
    )


def component_tokens(
    samples: Samples, graphs: TokenGraphs
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark the tokens in the component of their label, and the samples with two such tokens."""
    owner = samples.owner
    places = graphs.place_of(samples.last[owner], samples.tokens)
    own = graphs.place_of(samples.last, samples.labels)
    if (places < 0).any() or (own < 0).any():
        raise InputError("graphs", _OTHER, _OWN)
    inside = graphs.component[places] == graphs.component[own][owner]
    composed = np.zeros(samples.n, dtype=bool)
    composed[owner[inside & (samples.tokens != samples.labels[owner])]] = True
    return inside, composed


def _cyclic_nodes(graphs: TokenGraphs) -> NDArray[np.int64]:
    """Return the indices of the nodes in components of several tokens."""
    nodes: NDArray[np.int64] = (graphs.size[graphs.component] > 1).nonzero()[0]
    return nodes


_OTHER, _OWN = "graphs of other data", "those of these sequences and labels"


def choices(samples: Samples, graphs: TokenGraphs) -> tuple[Choices, NDArray[np.int64]]:
    """Write the cyclic sub-data as choices among nodes; also return the indices of these nodes."""
    inside, composed = component_tokens(samples, graphs)
    missing = composed & ~samples.realisable
    if missing.any():
        i = int(missing.argmax())
        got = f"the label {graphs.vocabulary.name(int(samples.labels[i]))} of sequence {i}"
        raise InputError("labels", got, "labels that occur in their sequence (Assumption 2)")
    owner = samples.owner
    kept = inside & composed[owner]
    places = graphs.place_of(samples.last[owner[kept]], samples.tokens[kept])
    nodes = _cyclic_nodes(graphs)
    column, row = np.searchsorted(nodes, places), (np.cumsum(composed) - 1)[owner[kept]]
    shape = (int(composed.sum()), len(nodes))
    counts = csr_array((np.ones(len(row)), (row, column)), shape=shape)
    counts.sum_duplicates()
    own = graphs.place_of(samples.last, samples.labels)[composed]
    chosen = np.searchsorted(nodes, own)
    _check_strong(counts, chosen, int((graphs.size > 1).sum()))
    return gathered(counts, chosen), nodes


def _check_strong(counts: csr_array, chosen: NDArray[np.int64], components: int) -> None:
    """Raise InputError if the choices do not connect each component: no finite minimum exists."""
    N, source = counts.shape[1], np.repeat(chosen, np.diff(counts.indptr))
    edges = csr_array((np.ones(len(source)), (source, counts.indices)), shape=(N, N))
    if connected_components(edges, directed=True, connection="strong")[0] != components:
        raise InputError("graphs", _OTHER, _OWN)


def _factors(E: Tensor, graphs: TokenGraphs, nodes: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Compute ``e_j − ē`` and ``e_k``, ``(m, d)`` each, for nodes of cyclic components."""
    component = torch.from_numpy(np.unique(graphs.component[nodes], return_inverse=True)[1])
    token, last = (torch.from_numpy(x[nodes]) for x in (graphs.token, graphs.last))
    count = int(component.max()) + 1 if len(component) else 0
    total = torch.zeros(count, E.shape[-1], dtype=E.dtype).index_add_(0, component, E[token])
    size = torch.bincount(component, minlength=count).to(E.dtype)
    return E[token] - (total / size.unsqueeze(-1))[component], E[last]


def _unit(x: Tensor) -> tuple[Tensor, Tensor]:
    """Scale rows to length one, and return their lengths ``(m, 1)``; a row of zeros stays zero."""
    size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / size.where(size > 0, 1.0), size


@final
@dataclass(frozen=True, eq=False)
class _Span:
    """The span of ``(e_j − ē) e_kᵀ``, independent of the lengths of the embeddings."""

    left: Tensor  # (m, d), unit rows
    right: Tensor  # (m, d)
    size: Tensor  # (m,), lengths of (e_j − ē) e_kᵀ
    vectors: Tensor  # (m, r), eigenvectors of the Gram matrix of left rightᵀ
    values: Tensor  # (r,)

    def weights(self, logits: Tensor) -> Tensor:
        """Find the shortest W with the logits ``⟨(e_j − ē) e_kᵀ, W⟩``, ``(m,)``."""
        unit = logits / self.size.where(self.size > 0, 1.0)
        beta = self.vectors @ ((self.vectors.mT @ unit) / self.values)
        return (self.left * beta.unsqueeze(-1)).mT @ self.right


def _span(E: Tensor, graphs: TokenGraphs, nodes: NDArray[np.int64]) -> _Span:
    (left, a), (right, b) = (_unit(x) for x in _factors(E, graphs, nodes))
    values, vectors = torch.linalg.eigh((left @ left.mT) * (right @ right.mT))
    keep = values > _RANK
    return _Span(left, right, (a * b)[:, 0], vectors[:, keep], values[keep])


def cyclic_basis(E: Array, graphs: TokenGraphs) -> Tensor:
    """Return orthonormal matrices that span ``S_cyc``, ``(r, d, d)`` (paper C, Definition 3).

    ``S_cyc`` is the span of ``(e_j − ē) e_kᵀ`` over all graphs k and all tokens j in components of
    several tokens; ē is the mean embedding of the component.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([[0, 1], [0, 1]], [0, 1], 2)
        >>> am.graphs.cyclic_basis([[1.0, 0.0], [0.0, 1.0]], graphs).shape
        torch.Size([1, 2, 2])
    """
    table = embedding_table(E, check_graphs(graphs).K, batched=False)
    nodes = _cyclic_nodes(graphs)
    d = table.shape[-1]
    if len(nodes) == 0:
        return table.new_zeros(0, d, d)
    span = _span(table.cpu().double(), graphs, nodes)
    scaled = span.vectors / span.values.sqrt()
    return torch.einsum("mr,md,me->rde", scaled, span.left, span.right).to(table)


def cyclic_part(W: Array, E: Array, graphs: TokenGraphs) -> Tensor:
    """Compute ``Π_cyc(W)``, the projection of weights ``(*R, d, d)`` onto ``S_cyc``.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([[0, 1], [0, 1]], [0, 1], 2)
        >>> W, E = [[0.0, 3.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]
        >>> am.graphs.cyclic_part(W, E, graphs)[:, 1].round(decimals=9).tolist()
        [1.0, -1.0]
    """
    basis = cyclic_basis(E, graphs)
    given = finite("W", floats("W", W, like=basis))
    if given.ndim < 2 or given.shape[-2:] != basis.shape[-2:]:
        raise InputError(
            "W", f"shape {tuple(given.shape)}", f"(*R, {', '.join(map(str, basis.shape[1:]))})"
        )
    inner = torch.einsum("rde,...de->...r", basis, given)
    return torch.einsum("...r,rde->...de", inner, basis)


def cyclic_correction(
    E: Array, sequences: Any, labels: Any, graphs: TokenGraphs, loss: str | Loss = "log"
) -> Tensor:
    """Compute ``W_cyc``, the shortest W that composes best inside components.

        W_cyc = argmin ‖W‖_F  among the minimisers of
        (1/m) Σ ℓ(Σ_{t: x_t = y} softmax(X̄ W x̄)_t)   over the cyclic data    (Definition 3)

    C Eᵀ = I. The log-loss (paper C, Theorem 3) is convex, and strictly convex on ``S_cyc``
    (Lemma 3), where Newton's method reduces the gradient below 1e-10. Other losses need not have a
    finite minimum; see :mod:`attnmargin.graphs.composition` for what is decided. ``W_cyc`` is zero
    for acyclic data.

    Args:
        E: embeddings ``(*B, K, d)``; with another loss than "log", linearly independent.
        sequences, labels, graphs: from one data set.
        loss: "log", "logistic", "squared", "exponential" or "linear".

    Returns:
        ``(*B, d, d)``.

    Example:
        >>> import attnmargin as am, torch
        >>> sequences, labels = [[0, 1], [0, 1], [0, 1]], [0, 0, 1]
        >>> graphs = am.token_graphs(sequences, labels, 2)
        >>> W = am.cyclic_correction(torch.eye(2), sequences, labels, graphs)
        >>> torch.softmax(W[:, 1], 0).tolist()  # the shares of the labels after token 1
        [0.6666666865348816, 0.3333333432674408]
    """
    table, used = embedding_table(E, check_graphs(graphs).K), as_loss(loss)
    given, nodes = choices(as_samples(sequences, labels, graphs.vocabulary), graphs)
    batch, d = table.shape[:-2], table.shape[-1]
    flat = table.cpu().double().reshape(-1, *table.shape[-2:])
    logits = None if isinstance(used, Log) or not len(nodes) else _best(given, nodes, graphs, used)
    found = [correction(member, graphs, given, nodes, logits) for member in flat]
    stacked = torch.stack(found) if found else flat.new_zeros(0, d, d)
    return stacked.reshape(*batch, d, d).to(table)


def _best(
    given: Choices, nodes: NDArray[np.int64], graphs: TokenGraphs, loss: Loss
) -> NDArray[np.float64]:
    """Find the logits of the nodes that minimise another loss than the log-loss."""
    found = composition(given, graphs.component[nodes], loss)
    if found.logits is None:
        got = f"{loss.name!r}, with {'no' if found.finite is False else 'no known'} finite minimum"
        raise InputError("loss", got, "a loss with a finite W_cyc on these data, such as 'log'")
    return found.logits


def correction(
    E: Tensor,
    graphs: TokenGraphs,
    given: Choices,
    nodes: NDArray[np.int64],
    logits: NDArray[np.float64] | None = None,
) -> Tensor:
    """Compute ``W_cyc`` for one embedding table, from the choices among nodes or their logits."""
    d = E.shape[-1]
    if len(nodes) == 0:
        return E.new_zeros(d, d)
    span = _span(E, graphs, nodes)
    if logits is not None:
        free = len(nodes) - len(np.unique(graphs.component[nodes]))
        if len(span.values) < free:
            raise InputError("E", "dependent embeddings", "independent ones (Assumption 4)")
        return span.weights(torch.from_numpy(logits))
    # Work in orthonormal coordinates of the attainable logits, so that lengths do not matter.
    M = np.linalg.qr((span.size.unsqueeze(-1) * span.vectors).numpy())[0]
    return span.weights(torch.from_numpy(M @ minimum(given, M)))
