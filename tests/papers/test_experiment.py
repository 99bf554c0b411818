"""Claims and intervals."""

import json

import numpy as np
import pytest

from attnmargin.base.intervals import share_interval
from attnmargin.papers.engine import experiment as parts
from attnmargin.papers.engine.experiment import Claim


def test_intervals() -> None:
    """Wilson's interval of 8 in 10, from its formula; a mean of equal numbers has no width."""
    low, high = share_interval(np.array([8]), 10)
    assert (float(low[0]), float(high[0])) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    mean, half = parts.mean_error(np.full((4, 2), 3.0))
    assert (mean.tolist(), half.tolist()) == ([3.0, 3.0], [0.0, 0.0])


def test_claims_without_a_number_are_valid_json() -> None:
    record = Claim("c", float("nan"), "≥ 1", np.bool_(False)).record()  # type: ignore[arg-type]
    assert json.loads(json.dumps(record)) == {
        "claim": "c", "measured": None, "bound": "≥ 1", "holds": False,
    }  # fmt: skip
