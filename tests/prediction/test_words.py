"""Names of tokens in predictions."""

import pytest

import attnmargin as am
from attnmargin.prediction.words import listing, name_tokens


def test_listing() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(list("abcdef"), most=4) == "a, b, c and 3 more"


def test_names_must_fit() -> None:
    data = am.random_data(2, 3, 4, name="names")
    with pytest.raises(am.InputError, match=r"words: got 2 rows of \[2\] names; needs 2 rows of 3"):
        name_tokens(data, [["a", "b"]] * 2)
