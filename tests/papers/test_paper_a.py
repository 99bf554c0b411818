"""Paper A: the conjecture of Section 5.2."""

import pytest

import attnmargin as am
from attnmargin.papers.a.conjecture import conjecture_experiment


def test_the_conjecture_from_one_call() -> None:
    record = conjecture_experiment(8, (6, 30), n=3, T=3)
    assert record["holds"]
    assert [row["trials"] for row in record["rows"]] == [4, 4]
    wide = record["rows"][1]
    assert wide["both"] == wide["selected"] > 0
    with pytest.raises(am.InputError, match="trials: got 1; needs at least one for each of 2"):
        conjecture_experiment(1, (6, 30))
