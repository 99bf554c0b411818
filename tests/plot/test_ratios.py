"""Margins in many norms as a heat map."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.plot.ratios import margins_picture
from tests.problems import planted_contradiction, random_problem

NAMES: list[str | float] = ["fro", "max", 3.0]


def test_cells_are_the_ratios_and_the_last_row_is_the_given_W() -> None:
    problem = am.margin_problem([[3.0, 4.0]], [[1.0]])
    steps = torch.tensor([[[1.0], [0.0]], [[3.0], [4.0]]], dtype=torch.float64)
    found = am.margins(problem, steps, norms=NAMES)
    panel = margins_picture(found)["panels"][0]
    assert panel["ticks"] == ["Frobenius", "max", "ℓ3"]
    assert panel["ticks_up"] == ["Frobenius", "max", "ℓ3", "given W"]
    cells = panel["series"][0]
    table = np.asarray(cells["values"]).reshape(4, 3)
    np.testing.assert_allclose(table[:3], found.ratios.numpy())
    np.testing.assert_allclose(table[3, 0], 1.0)
    assert cells["x"][:4].tolist() == [0, 1, 2, 0]
    assert cells["y"][:4].tolist() == [0, 0, 0, 1]


def test_drawn_numbers_are_in_the_cells() -> None:
    pytest.importorskip("matplotlib")
    found = am.margins(planted_contradiction(3, 2, 4, 0)[0], norms=NAMES)
    words = [text.get_text() for text in am.plot.norms(found).axes[0].texts]
    assert words == ["–"] * 9
    found = am.margins(am.margin_problem([[3.0, 4.0]], [[1.0]]), norms=["fro", "max"])
    words = [text.get_text() for text in am.plot.norms(found).axes[0].texts]
    assert words == ["1.00", "0.89", "0.99", "1.00"]


def test_a_batch_is_refused() -> None:
    found = am.margins(random_problem((2, 3, 4), 2, "sphere", False), norms=["fro"])
    with pytest.raises(am.InputError, match="margins: got"):
        am.plot.norms(found)
