"""The hunt: the library against independent oracles, area by area."""

from collections.abc import Callable, Iterator

from tests.hunt import (
    area_embeddings,
    area_graphs,
    area_guarantees,
    area_locality,
    area_paths,
    area_runs,
    area_solutions,
    area_status,
    area_training,
)
from tests.hunt.answers import Case

AREAS: dict[str, Callable[[int], Iterator[list[Case]]]] = {
    "status": area_status.batches,
    "solutions": area_solutions.batches,
    "locality": area_locality.batches,
    "guarantees": area_guarantees.batches,
    "runs": area_runs.batches,
    "training": area_training.batches,
    "paths": area_paths.batches,
    "graphs": area_graphs.batches,
    "embeddings": area_embeddings.batches,
}
