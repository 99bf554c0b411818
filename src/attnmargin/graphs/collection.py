"""Token-priority graphs: which tokens dominate which, given the last token (paper C, Section 3)."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.ragged import Ids, row_of
from attnmargin.base.words import counted
from attnmargin.graphs.edges import EdgeSet, components_of, distinct, nodes_of
from attnmargin.graphs.graph import TokenGraph
from attnmargin.graphs.noise import Noise
from attnmargin.graphs.samples import Samples, as_samples, chunks, joined
from attnmargin.graphs.vocabulary import Vocabulary

_UNREALISABLE = ("keep", "drop")


@final
class TokenGraphs:
    """One graph per last token k: an edge i → j where label i was seen with token j.

    Arrays run over all nodes, sorted by last token, then token: ``last``, ``token`` and
    ``component``, each ``(N,)``. Components are numbered by last token and, within a graph, from
    the highest priority down; ``layer`` and ``size`` describe them, ``(C,)``. Edges ``source`` and
    ``target`` ``(M,)`` are indices of nodes. Self-loops carry no information and are omitted.

    :func:`token_graphs` and :func:`pseudo_graphs` build it; ``graphs[k]`` is the graph of one last
    token.
    """

    def __init__(
        self,
        keys: Ids,
        vocabulary: Vocabulary,
        samples: Samples | None,
        unrealisable: int = 0,
        dropped: int = 0,
        noise: Noise | None = None,
    ) -> None:
        nodes = nodes_of(keys)
        found = components_of(nodes)
        self.vocabulary, self.samples = vocabulary, samples
        # numbers of samples whose label is not in their sequence: kept, and dropped
        self.unrealisable, self.dropped = unrealisable, dropped
        # choices that were left out because they contradict the rest
        self.noise = noise
        self.last, self.token, self.source, self.target = nodes
        self.component, self.layer = found.of_node, found.layer
        self.size: Ids = np.bincount(self.component, minlength=len(self.layer))
        # last tokens that have a graph, and the first node and component of each
        self.roots = distinct(self.last)
        self._nodes = np.append(np.searchsorted(self.last, self.roots), len(self.last))
        self._components = np.searchsorted(found.last, np.append(self.roots, len(vocabulary)))

    @property
    def K(self) -> int:
        """Size of the vocabulary."""
        return len(self.vocabulary)

    def __len__(self) -> int:
        """Number of last tokens that have a graph."""
        return len(self.roots)

    def __iter__(self) -> Iterator[TokenGraph]:
        return (self._view(place) for place in range(len(self)))

    def __contains__(self, last: Any) -> bool:
        k = self.vocabulary.find(last)
        return k is not None and self.at(k) is not None

    def __getitem__(self, last: Any) -> TokenGraph:
        """Return the graph of a last token, given by id or by name."""
        graph = self.at(int(self.vocabulary.ids([last], "last token")[0]))
        if graph is None:
            raise InputError("last token", repr(last), "a token that ends a sequence")
        return graph

    def at(self, k: int) -> TokenGraph | None:
        """Return the graph of the last token with id k, or None."""
        place = int(np.searchsorted(self.roots, k))
        known = place < len(self) and self.roots[place] == k
        return self._view(place) if known else None

    def _view(self, place: int) -> TokenGraph:
        nodes = slice(*self._nodes[place : place + 2])
        parts = slice(*self._components[place : place + 2])
        edges = slice(*np.searchsorted(self.source, self._nodes[place : place + 2]))
        return TokenGraph(
            int(self.roots[place]),
            self.token[nodes],
            np.stack((self.source[edges], self.target[edges]), -1) - nodes.start,
            self.component[nodes] - parts.start,
            self.layer[parts],
            self.vocabulary,
        )

    @property
    def acyclic(self) -> bool:
        """Whether all components have one token (paper C, Definition 2)."""
        return bool((self.size == 1).all())

    @property
    def realisable(self) -> bool:
        """Whether every label occurs in its sequence (paper C, Assumption 2)."""
        return self.unrealisable == 0

    @cached_property
    def dominance(self) -> tuple[Ids, Ids, Ids]:
        """All ``(i ⇒ j)``: tokens i, tokens j and last tokens, one row per edge."""
        between = self.component[self.source] != self.component[self.target]
        source, target = self.source[between], self.target[between]
        return self.token[source], self.token[target], self.last[source]

    @cached_property
    def equality(self) -> tuple[Ids, Ids, Ids]:
        """Pairs ``(i ≍ j)``: the first token i of every component with each other token j in it."""
        first = np.zeros(len(self.size), dtype=np.int64)
        first[self.component[::-1]] = np.arange(len(self.component))[::-1]
        other = (first[self.component] != np.arange(len(self.component))).nonzero()[0]
        return self.token[first[self.component[other]]], self.token[other], self.last[other]

    def place_of(self, last: NDArray[Any], token: NDArray[Any]) -> Ids:
        """Return the indices of nodes in the arrays; −1 for a node that does not exist."""
        keys, wanted = self._keys, last * self.K + token
        place = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
        found = keys[place] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        return np.where(found, place, -1)

    @cached_property
    def _keys(self) -> Ids:
        keys: Ids = self.last * self.K + self.token
        return keys

    def __repr__(self) -> str:
        kind = "acyclic" if self.acyclic else "cyclic"
        sizes = {
            "graph": self.roots,
            "node": self.last,
            "edge": self.source,
            "component": self.size,
        }
        counts = ", ".join(counted(len(array), name) for name, array in sizes.items())
        return f"TokenGraphs(K={self.K}, {counts}, {kind})"


def token_graphs(
    sequences: Any,
    labels: Any,
    vocabulary: Any = None,
    *,
    unrealisable: str = "keep",
    keep_samples: bool = True,
) -> TokenGraphs:
    """Build the graphs of next-token data: label → every token of its sequence, per last token.

    Paper C, Section 3.1. Sequences may differ in length, and may be streams. Memory holds the
    distinct edges, plus one number per token unless ``keep_samples`` is false.

    Args:
        sequences: token ids ``(n, T)``, or n sequences of ids or names, or an iterator of them.
        labels: the next tokens, n ids or names.
        vocabulary: K, a list of K names, or None to number tokens in order of appearance.
        unrealisable: how to treat labels that are not in their sequence (Assumption 2). "keep"
            follows the definition. "drop" removes such samples: attention cannot produce a token
            that it does not see, and with C Eᵀ = I they exert no pull.
        keep_samples: keep the data, which soft composition requires.

    Returns:
        :class:`TokenGraphs`.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([[0, 1, 2], [1, 0, 2], [0, 1, 3, 2]], [0, 1, 0], 4)
        >>> graphs
        TokenGraphs(K=4, 1 graph, 4 nodes, 5 edges, 3 components, cyclic)
        >>> graphs[2].components
        [[0, 1], [2], [3]]
    """
    if unrealisable not in _UNREALISABLE:
        raise InputError("unrealisable", repr(unrealisable), "'keep' or 'drop'")
    words = Vocabulary(vocabulary)
    edges, kept, without = EdgeSet(), [], 0
    for part in chunks(sequences, labels, words):
        realisable = part.realisable
        without += int((~realisable).sum())
        samples = part if unrealisable == "keep" else part[realisable]
        _add(edges, samples)
        if keep_samples:
            kept.append(samples)
    keys = edges.merged()
    if len(keys) == 0:
        many = counted(without, "sequence")
        what = f"{many}, none with its label in it" if without else "no sequence"
        raise InputError("sequences", what, "at least one sequence")
    words.close()
    counts = (without, 0) if unrealisable == "keep" else (0, without)
    return TokenGraphs(keys, words, joined(kept) if keep_samples else None, *counts)


def _add(edges: EdgeSet, samples: Samples) -> None:
    owner = samples.owner
    edges.add(samples.last[owner], samples.labels[owner], samples.tokens)
    # A label that is not in its sequence is a node too.
    edges.add(samples.last, samples.labels, samples.labels)


def keys_of(samples: Samples, last: Ids, token: Ids) -> Ids:
    """Return the edges of some samples, between at least these nodes."""
    edges = EdgeSet()
    _add(edges, samples)
    edges.add(last, token, token)
    return edges.merged()


def pseudo_graphs(
    sequences: Any, probabilities: Any, vocabulary: Any, *, threshold: float = 1e-3
) -> TokenGraphs:
    """Build the graphs of what trained attention selects: selected token → every token with it.

    Paper C, Section 6, draws the edge ``x_t → x_τ`` if ``s_t > 0``. A trained softmax is never
    zero, so a token counts as selected if ``s_t > threshold``; the largest always does.

    Args:
        sequences, vocabulary: as in :func:`token_graphs`.
        probabilities: ``s``, ``(n, T)``, one per token of each sequence, as
            :func:`attnmargin.probabilities` returns them.

    Example:
        >>> import attnmargin as am
        >>> am.graphs.pseudo_graphs([[0, 1, 2]], [[0.5, 0.5, 0.0]], 3)[2].components
        [[0, 1], [2]]
    """
    words = Vocabulary(vocabulary)
    if not isinstance(threshold, int | float) or not 0.0 <= threshold < 1.0:
        raise InputError("threshold", repr(threshold), "a share of at least 0 and below 1")
    samples = _unlabelled(sequences, words)
    s, owner = _attention(probabilities, samples), samples.owner
    best = np.maximum.reduceat(s, samples.start[:-1])[owner]
    edges = EdgeSet()
    for i in ((s > threshold) | (s == best)).nonzero()[0]:
        row = row_of(samples.tokens, samples.start, owner[i])
        edges.add(np.full(len(row), row[-1]), np.full(len(row), samples.tokens[i]), row)
    words.close()
    return TokenGraphs(edges.merged(), words, None)


def _unlabelled(sequences: Any, words: Vocabulary) -> Samples:
    """Label each sequence with its own last token."""
    needs = "at least one sequence of tokens"
    try:
        rows = sequences if isinstance(sequences, np.ndarray | Tensor) else list(sequences)
        if len(rows) == 0:
            raise InputError("sequences", "nothing", needs)
        if isinstance(rows, list):
            return as_samples(rows, [row[-1] if len(row) else 0 for row in rows], words)
        return as_samples(rows, rows[..., -1], words)
    except TypeError:
        raise InputError("sequences", f"{sequences!r:.60}", needs) from None


def _attention(probabilities: Any, samples: Samples) -> NDArray[np.float64]:
    """Concatenate the shares of attention, one per token of all sequences."""
    needs = "one share from 0 to 1 per token of every sequence"
    try:
        rows = [np.asarray(row, dtype=float) for row in probabilities]
    except (TypeError, ValueError, RuntimeError):
        got = f"a {type(probabilities).__name__}"
        raise InputError("probabilities", got, needs) from None
    lengths = np.diff(samples.start)
    if len(rows) != samples.n or any(row.ndim != 1 for row in rows):
        got = f"{counted(len(rows), 'row')} for {counted(samples.n, 'sequence')}"
        raise InputError("probabilities", got, needs)
    if any(len(row) < length for row, length in zip(rows, lengths, strict=True)):
        raise InputError("probabilities", "fewer numbers than tokens", needs)
    s = np.concatenate([row[:length] for row, length in zip(rows, lengths, strict=True)])
    if not ((s >= 0.0) & (s <= 1.0 + 1e-6)).all():
        wrong = s[~((s >= 0.0) & (s <= 1.0 + 1e-6))][0]
        raise InputError("probabilities", f"{wrong:g}", needs)
    return s
