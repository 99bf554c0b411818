"""Hands of queries: which queries of a head an attention SVM asks together."""

import math

import torch

from attnmargin.models.fit import Choices
from attnmargin.models.head import Head
from attnmargin.models.queries import Queries, widest
from attnmargin.models.settings import Settings

# Numbers in the rows of one attention SVM: 256 MB. With slack fewer, because most queries then hold
# rows, and time grows with the square of their number.
_NUMBERS, _SOFT_NUMBERS = 1 << 25, 1 << 23
ROTARY = "its positions are rotary: logits are those of one W per distance, not of one W"
TOO_SHORT = "no query sees two tokens"


def hands(
    head: Head, queries: Queries, settings: Settings, count: int | None = None
) -> list[Choices]:
    """Deal queries into hands, of equal gaps as far as possible.

    Args:
        queries: what the head, or a random one in its place, selects.
        count: take so many, those with the widest gaps, in place of those that are saturated.
    """
    if settings.which == "widest":
        best = widest(head, queries, settings.queries * settings.draws)
        return _dealt(best, settings.draws)
    if settings.which == "saturated" and count is None:
        queries = queries[queries.share > settings.saturated]
    best = widest(head, queries, len(queries) if count is None else count)
    return _dealt(best, -(-len(best) // largest(head, settings)))


def largest(head: Head, settings: Settings) -> int:
    """Count the queries that fit into one attention SVM.

    q queries have ``q (T − 1)`` rows of ``d`` numbers each; with slack of ``d + q``.
    """
    rivals, d = max(head.T - 1, 1), head.d + 1
    if settings.cost == math.inf:
        return max(_NUMBERS // (rivals * d), 1)
    most = _SOFT_NUMBERS // rivals
    return max(int(math.sqrt(d * d / 4 + most) - d / 2), 1)  # the root of q (d + q) = most


def refusal(head: Head, queries: Queries, dealt: list[Choices], settings: Settings) -> str:
    """Say why a head has no attention SVM; nothing if it has one."""
    if head.rotary is not None:
        return ROTARY
    if dealt:
        return ""
    if not len(queries):
        return TOO_SHORT
    return f"no query gives one token more than {100 * settings.saturated:.4g}% of its attention"


def _dealt(best: Queries, count: int) -> list[Choices]:
    found = []
    for k in range(min(count, len(best))):
        own = best[torch.arange(k, len(best), count)]
        found.append(Choices(own.text, own.position, own.token))
    return found
