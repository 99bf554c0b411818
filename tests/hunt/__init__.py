"""The hunt: the library against independent oracles, area by area."""

from collections.abc import Callable, Iterator

from tests.hunt import area_locality, area_solutions, area_status
from tests.hunt.answers import Case

AREAS: dict[str, Callable[[int], Iterator[list[Case]]]] = {
    "status": area_status.batches,
    "solutions": area_solutions.batches,
    "locality": area_locality.batches,
}
