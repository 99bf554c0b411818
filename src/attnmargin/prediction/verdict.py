"""How sure a prediction is."""

from enum import StrEnum


class Verdict(StrEnum):
    """How sure a prediction is."""

    GUARANTEED = "guaranteed"
    CONJECTURED = "conjectured"
    DEPENDS = "depends on the start"
