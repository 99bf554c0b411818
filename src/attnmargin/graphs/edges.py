"""The edges of all graphs as one sorted set of integers; components and layers of all graphs."""

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from attnmargin.base.ragged import Ids, spans
from attnmargin.graphs.vocabulary import BITS

_MASK = (1 << BITS) - 1
# Number of edges buffered before they are merged into the set.
_PENDING = 1 << 22


def distinct(x: Ids) -> Ids:
    """Sort the distinct numbers: ``np.unique`` without its hash table, ten times faster."""
    ordered = np.sort(x)
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


@final
class EdgeSet:
    """A growing set of edges (last token, from, to); it stores each distinct edge once."""

    def __init__(self) -> None:
        self._parts: list[Ids] = []
        self._pending = 0

    def add(self, last: Ids, source: Ids, target: Ids) -> None:
        """Add edges, possibly with duplicates."""
        keys = distinct((last << 2 * BITS) | (source << BITS) | target)
        self._parts.append(keys)
        self._pending += len(keys)
        if self._pending > max(_PENDING, 2 * len(self._parts[0])):
            self.merged()

    def merged(self) -> Ids:
        """Return all distinct edges in order, self-loops included."""
        nothing = np.zeros(0, dtype=np.int64)
        keys = distinct(np.concatenate([nothing, *self._parts]))
        self._parts, self._pending = [keys], 0
        return keys


class Nodes(NamedTuple):
    """Nodes of all graphs, sorted by last token and token, and the edges between them."""

    last: Ids  # (N,)
    token: Ids  # (N,)
    source: Ids  # (M,), sorted
    target: Ids  # (M,)


def nodes_of(keys: Ids) -> Nodes:
    """Collect the nodes that occur in edges, and the edges without self-loops."""
    last, source, target = keys >> 2 * BITS, (keys >> BITS) & _MASK, keys & _MASK
    left, right = (last << BITS) | source, (last << BITS) | target
    names = distinct(np.concatenate((distinct(left), right)))
    proper = source != target
    places = (np.searchsorted(names, side[proper]) for side in (left, right))
    return Nodes(names >> BITS, names & _MASK, *places)


class Components(NamedTuple):
    """Strongly connected components, numbered by last token, then from the highest layer down."""

    of_node: Ids  # (N,)
    layer: Ids  # (C,), 0 for components that no other dominates
    last: Ids  # (C,)


def components_of(nodes: Nodes) -> Components:
    """Find the components of all graphs in one call, on the block-diagonal adjacency matrix.

    The layer of a component is the length of the longest path that ends in it.
    """
    N = len(nodes.last)
    ones = np.ones(len(nodes.source), dtype=np.int8)
    adjacency = csr_array((ones, (nodes.source, nodes.target)), shape=(N, N))
    count, label = connected_components(adjacency, directed=True, connection="strong")
    layer = _layers(label[nodes.source], label[nodes.target], count)
    last, first = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    last[label] = nodes.last
    first[label[::-1]] = np.arange(N)[::-1]  # the smallest node of each component
    order = np.lexsort((first, layer, last))
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    return Components(rank[label], layer[order], last[order])


def _layers(source: NDArray[Any], target: NDArray[Any], count: int) -> Ids:
    """Compute the longest path from the top to every component, layer by layer."""
    between = source != target
    pairs = distinct(source[between].astype(np.int64) * count + target[between])
    source, target = np.divmod(pairs, count)
    start = np.searchsorted(source, np.arange(count + 1))
    above = np.bincount(target, minlength=count)
    layer = np.zeros(count, dtype=np.int64)
    front, depth = (above == 0).nonzero()[0], 0
    while len(front):
        layer[front] = depth
        reached = target[spans(start[front], start[front + 1])]
        np.subtract.at(above, reached, 1)
        reached = distinct(reached)
        front, depth = reached[above[reached] == 0], depth + 1
    return layer
