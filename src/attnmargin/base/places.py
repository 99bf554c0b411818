"""Where something is, in words."""

from collections.abc import Sequence


def sequence_words(sequence: int, query: int | None = None) -> str:
    """Name a sequence, and the query of it where there are several.

    >>> sequence_words(3), sequence_words(3, 1)
    ('sequence 3', 'sequence 3, query 1')
    """
    return f"sequence {sequence}" + ("" if query is None else f", query {query}")


def place_words(place: Sequence[int], batch: int) -> str:
    """Name the place ``(*B, i)`` or ``(*B, i, k)`` of a sequence, or a query of one, in a batch.

    Args:
        place: indices.
        batch: how many of them are those of the batch.

    >>> place_words([7, 3, 1], batch=1)
    'sequence 3, query 1 of instance 7'
    """
    own = tuple(int(i) for i in place)
    words = sequence_words(*own[batch:])
    if not batch:
        return words
    return f"{words} of instance {own[0] if batch == 1 else own[:batch]}"
