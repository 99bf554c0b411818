"""How sure a prediction is."""

from enum import StrEnum


class Verdict(StrEnum):
    """How sure a prediction is."""

    GUARANTEED = "guaranteed"  # from every start
    FROM_START = "guaranteed from this start"
    CONJECTURED = "conjectured"
    UNDECIDED = "undecided"
