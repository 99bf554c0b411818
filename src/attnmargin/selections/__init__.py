"""What training can end in: local optimality, the search for it, cones, mixtures."""

from attnmargin.attention.score import high_tokens, low_tokens, score_gaps, tied_tokens
from attnmargin.margin.solution import support_tokens
from attnmargin.selections.composition import optimal_composition
from attnmargin.selections.cones import in_direction_cone, score_barrier
from attnmargin.selections.exact import exact_locality
from attnmargin.selections.local_optimality import (
    Locality,
    label_margin,
    locality,
    locally_optimal,
)
from attnmargin.selections.search import Search, local_selections

__all__ = [
    "Locality",
    "Search",
    "exact_locality",
    "high_tokens",
    "in_direction_cone",
    "label_margin",
    "local_selections",
    "locality",
    "locally_optimal",
    "low_tokens",
    "optimal_composition",
    "score_barrier",
    "score_gaps",
    "support_tokens",
    "tied_tokens",
]
