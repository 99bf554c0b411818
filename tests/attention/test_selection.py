"""One check of selections: every function that takes one refuses it in the same words."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import attnmargin as am
from attnmargin.attention.selection import selected_sets, selected_tokens

DATA = am.random_data(3, 4, 5, name="homes")
USES: dict[str, Callable[[Any], object]] = {
    "problem": lambda s: am.token_problem(DATA.X, DATA.z, s),
    "label problem": lambda s: am.label_problem(DATA.X, DATA.y, s),
    "low tokens": lambda s: am.selections.low_tokens(DATA, s),
    "locality": lambda s: am.selections.locality(DATA, s),
    "probability": lambda s: am.measures.token_probability(
        DATA, torch.zeros(5, 5, dtype=torch.float64), s
    ),
    "path": lambda s: am.regularization_path(
        DATA, [1.0], selection=s, init=torch.eye(5, dtype=torch.float64)
    ),
}
WRONG = {
    "too few": ([0, 1], "selection: got shape (2,); needs one token per query, (3,)"),
    "too large": ([0, 4, 1], "selection: got tokens from 0 to 4; needs tokens from 0 to 3"),
    "negative": ([0, -1, 2], "selection: got tokens from -1 to 2; needs tokens from 0 to 3"),
    "not whole": ([0.5, 1.0, 2.0], "selection: got torch.float64 entries; needs whole numbers"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_selections_get_the_same_sentence(use: str, wrong: str) -> None:
    selection, words = WRONG[wrong]
    with pytest.raises(am.InputError, match=f"^{re.escape(words)}$"):
        USES[use](selection)


@pytest.mark.parametrize("use", [name for name in USES if name != "path"])
def test_a_right_selection_is_taken(use: str) -> None:
    assert USES[use]([0, 1, 2]) is not None


def test_sets_and_indices_are_the_same_selection() -> None:
    sets = torch.tensor([[True, False], [False, True]])
    assert torch.equal(selected_sets([0, 1], sets.double(), (2,), 2), sets)
    assert torch.equal(selected_sets(sets, sets.double(), (2,), 2), sets)
    with pytest.raises(am.InputError, match=r"got shape \(2, 2\); needs a set per query, \(2, 3\)"):
        selected_sets(sets, sets.double(), (2,), 3)


def test_selections_are_spread_over_a_batch() -> None:
    like = torch.zeros(())
    assert selected_tokens([0, 1], like, (2,), 2, (3,)).shape == (3, 2)
    assert selected_tokens([[0, 1]], like, (2,), 2, (3,)).shape == (3, 2)
    assert selected_tokens([[0, 1]] * 4, like, (2,), 2).shape == (4, 2)
    with pytest.raises(am.InputError, match=r"got shape \(4, 2\); needs one token per query, \(3,"):
        selected_tokens([[0, 1]] * 4, like, (2,), 2, (3,))
