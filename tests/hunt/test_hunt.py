"""A few hundred cases of every area: no answer is wrong, and ordinary data are decided."""

import pytest

from tests.hunt import AREAS
from tests.hunt.answers import Answer
from tests.hunt.run import Tally, cases_of

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
