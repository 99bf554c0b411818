"""One check."""

import attnmargin as am
from tests.instances import identity_data


def test_a_check_in_words() -> None:
    check = am.theory.check_theory(identity_data())[0]
    assert str(check) == "A: Theorem 1: holds (token width d 8, needed, max(T − 1, n) 2)"
