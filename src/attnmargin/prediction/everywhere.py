"""Predictions that hold from every start: the theorems of the papers."""

import torch
from torch import Tensor

from attnmargin.selections.search import only_local
from attnmargin.theory.check import holds
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import theorem_3_by_queries, theorem_4, theorem_6


def from_every_start(facts: Facts) -> Tensor:
    """Decide whether a theorem promises the best tokens from every start, bool ``(*B,)``.

    One sequence (paper A, Theorem 4), or nothing to choose; or a long first step leads there
    (Theorem 6), no point is stationary (Theorem 3), and no other selection is locally optimal. The
    search for these, which may be long, is done only where the others hold.
    """
    sure = holds(theorem_4(facts)) | _single(facts)
    asked = holds(theorem_6(facts)) & holds(theorem_3_by_queries(facts)) & facts.distinct & ~sure
    for index in asked.nonzero().tolist():
        place = tuple(index)
        one = facts.data[place] if place else facts.data
        sure[place] = only_local(one, facts.norm, limit=facts.limit)
    return sure


def _single(facts: Facts) -> Tensor:
    """Whether every query sees one token at most, bool ``(*B,)``."""
    seen = torch.isfinite(facts.gamma).sum(-1)
    return (seen <= 1).all(facts.inner(seen)) if facts.inner(seen) else seen <= 1
