"""TokenGraph: the graph of one last token."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import Ids, rows_of, starts_of
from attnmargin.base.words import counted
from attnmargin.graphs.vocabulary import Vocabulary


@final
@dataclass(frozen=True, eq=False)
class TokenGraph:
    """What the training data say about the tokens seen with one last token.

    ``components`` lists token ids from the highest priority down. Components of one layer do not
    dominate each other.
    """

    last: int
    tokens: Ids  # (N,) ids, sorted
    edges: Ids  # (M, 2), indices into tokens
    component: Ids  # (N,)
    layer: Ids  # (C,)
    vocabulary: Vocabulary

    @property
    def name(self) -> str:
        """Name of the last token."""
        return self.vocabulary.name(self.last)

    @cached_property
    def components(self) -> list[list[int]]:
        """Token ids of the components, in priority order."""
        order = np.argsort(self.component, kind="stable")
        start = starts_of(np.bincount(self.component, minlength=len(self.layer)))
        return [part.tolist() for part in rows_of(self.tokens[order], start)]

    @property
    def acyclic(self) -> bool:
        """Whether every component is a single token."""
        return len(self.layer) == len(self.tokens)

    @cached_property
    def condensation(self) -> Ids:
        """Edges between components, ``(m, 2)``, each once."""
        pairs = self.component[self.edges]
        found: Ids = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
        return found

    @property
    def inner(self) -> Ids:
        """Edges inside components, ``(m, 2)``, indices into tokens."""
        return self.edges[self.component[self.edges[:, 0]] == self.component[self.edges[:, 1]]]

    @cached_property
    def reach(self) -> NDArray[np.bool_]:
        """Which component dominates which, directly or along a path, bool ``(C, C)``."""
        C = len(self.layer)
        found = np.zeros((C, C), dtype=bool)
        start = np.searchsorted(self.condensation[:, 0], np.arange(C + 1))
        for c in range(C - 1, -1, -1):  # components are numbered from the top
            follow = self.condensation[start[c] : start[c + 1], 1]
            np.any(found[follow], axis=0, out=found[c])
            found[c, follow] = True
        return found

    @cached_property
    def covers(self) -> Ids:
        """Edges between components that are not implied by a longer path, ``(m, 2)``."""
        kept = []
        start = np.searchsorted(self.condensation[:, 0], np.arange(len(self.layer) + 1))
        for c in range(len(self.layer)):
            follow = self.condensation[start[c] : start[c + 1], 1]
            kept += [(c, j) for j in follow.tolist() if not self.reach[follow, j].any()]
        return np.array(kept, dtype=np.int64).reshape(-1, 2)

    def __contains__(self, token: Any) -> bool:
        return self._place(token) is not None

    def _place(self, token: Any) -> int | None:
        k = self.vocabulary.find(token)
        if k is None:
            return None
        place = int(np.searchsorted(self.tokens, k))
        return place if place < len(self.tokens) and self.tokens[place] == k else None

    def places_of(self, ids: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Find the indices of tokens in the graph, and mark which tokens it contains."""
        place = np.searchsorted(self.tokens, ids).clip(max=len(self.tokens) - 1)
        return place, self.tokens[place] == ids

    def components_of(self, ids: Ids) -> Ids:
        """Return the components of tokens, −1 for tokens outside the graph."""
        place, known = self.places_of(ids)
        return np.where(known, self.component[place], -1)

    def equal(self, i: Any, j: Any) -> bool:
        """Test ``(i ≍ j)``: two distinct tokens share a component."""
        a, b = self._place(i), self._place(j)
        if a is None or b is None or a == b:
            return False
        return bool(self.component[a] == self.component[b])

    def dominates(self, i: Any, j: Any) -> bool:
        """Test ``(i ⇒ j)``: there is an edge from i to j, and no path back."""
        a, b = self._place(i), self._place(j)
        if a is None or b is None or self.component[a] == self.component[b]:
            return False
        return bool(((self.edges[:, 0] == a) & (self.edges[:, 1] == b)).any())

    def priority(self, token: Any) -> int | None:
        """Return the layer of a token, 0 for the highest; None if it is not in the graph."""
        place = self._place(token)
        return None if place is None else int(self.layer[self.component[place]])

    def __repr__(self) -> str:
        sizes = {"token": self.tokens, "edge": self.edges, "component": self.layer}
        counts = ", ".join(counted(len(array), name) for name, array in sizes.items())
        return f"TokenGraph(last={self.name!r}, {counts})"
