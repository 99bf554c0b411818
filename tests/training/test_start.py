"""Where training begins."""

import pytest
import torch

import attnmargin as am


def test_starts_of_another_batch_are_refused() -> None:
    data = am.random_data(3, 4, 5, trials=3, name="batch")
    for options in (
        {"init": torch.zeros(2, 5, 5).double()},
        {"parameter": "KQ", "init": (1.0, 2.0)},
    ):
        with pytest.raises(am.InputError, match="init: got"):
            am.train(data, steps=1, **options)
