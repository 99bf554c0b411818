"""A few hundred cases of every area: no answer is wrong, and ordinary data are decided."""

from pathlib import Path

import pytest

import attnmargin as am
from tests.hunt import AREAS
from tests.hunt.answers import Answer
from tests.hunt.part import Part, cases_of
from tests.hunt.tally import Tally, tallies_of

COUNTS = {
    "status": 400,
    "solutions": 400,
    "locality": 400,
    "guarantees": 400,
    "runs": 150,
    "training": 400,
    "paths": 84,
    "graphs": 400,
    "embeddings": 400,
}


@pytest.mark.parametrize("area", AREAS)
def test_no_answer_is_wrong(area: str) -> None:
    tally, wrong = Tally(area), []
    for case in cases_of(area, 0, COUNTS[area]):
        tally.add(case)
        if case.answer == Answer.WRONG:
            wrong.append(f"{case.family}: {case.about}")
    assert not wrong, f"{len(wrong)} of {tally.cases}, such as {wrong[:5]}"
    assert tally.share("ordinary") < 1.0
    assert tally.asked["adversarial"] > 0


def test_parts_of_a_hunt_are_points_of_a_sweep(tmp_path: Path) -> None:
    points = [{"area": "status", "part": k, "cases": 20, "seconds": None} for k in range(2)]
    first = am.sweep(Part(), points, seed=3, out=tmp_path, jobs=1, shard="1/2")
    assert [tally.cases for tally in tallies_of(first, ["status"])] == [20]
    whole = am.sweep(Part(), points, seed=3, out=tmp_path, jobs=1)
    found = tallies_of(whole, ["status"])[0]
    expected = Tally("status")
    for seed in (3, 4):
        for case in cases_of("status", seed, 20):
            expected.add(case)
    assert (found.cases, found.right, found.asked) == (40, expected.right, expected.asked)
