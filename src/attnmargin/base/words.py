"""Counts in words."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun, in the singular or the plural.

    Args:
        one: the noun of one thing.
        many: the noun of none or several; ``one`` with an s if it is not given.

    >>> counted(1, "graph"), counted(0, "graph"), counted(1200, "class", "classes")
    ('1 graph', '0 graphs', '1,200 classes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
