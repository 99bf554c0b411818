"""Counts in words, and characters that files may hold."""

import re

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def allowed(text: str) -> str:
    r"""Replace characters that neither XML nor a page may hold by U+FFFD.

    >>> allowed("naïve\x00") == "naïve\ufffd"
    True
    """
    return _FORBIDDEN.sub("\ufffd", text)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun, singular or plural.

    Args:
        one: the singular.
        many: the plural; by default ``one`` with an s.

    >>> counted(1, "graph"), counted(0, "graph"), counted(1200, "class", "classes")
    ('1 graph', '0 graphs', '1,200 classes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
