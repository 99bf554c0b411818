"""Names of sequences, queries and instances, for messages."""

from collections.abc import Sequence


def sequence_words(sequence: int, query: int | None = None) -> str:
    """Name a sequence, and one of its queries if there are several.

    >>> sequence_words(3), sequence_words(3, 1)
    ('sequence 3', 'sequence 3, query 1')
    """
    return f"sequence {sequence}" + ("" if query is None else f", query {query}")


def place_words(place: Sequence[int], batch: int) -> str:
    """Name the sequence ``(*B, i)``, or its query ``(*B, i, k)``, in a batch.

    Args:
        place: indices.
        batch: how many of them index the batch.

    >>> place_words([7, 3, 1], batch=1)
    'sequence 3, query 1 of instance 7'
    """
    own = tuple(int(i) for i in place)
    words = sequence_words(*own[batch:])
    if not batch:
        return words
    return f"{words} of instance {own[0] if batch == 1 else own[:batch]}"
