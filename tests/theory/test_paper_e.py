"""Paper E as checks."""

import attnmargin as am
from attnmargin.theory.check import Check, Outcome


def checks(contexts: list[list[float]], counts: list[list[int]]) -> dict[str, Check]:
    data = am.decoders.next_words(contexts, counts)
    return {check.name: check for check in am.theory.check_decoder(data)}


def test_independent_contexts_satisfy_everything() -> None:
    found = checks([[1.0, 0.0], [1.0, 1.0]], [[3, 1, 0], [0, 2, 5]])
    assert all(check.outcome == Outcome.HOLDS for check in found.values())
    bound = found["Entropy bound"].numbers
    assert float(bound["infimum where separable"]) == float(bound["entropy"])


def test_parallel_contexts_with_other_shares_are_not_compatible() -> None:
    found = checks([[1.0], [2.0]], [[1, 3, 0], [1, 1, 0]])
    fails = [name for name, check in found.items() if check.outcome == Outcome.FAILS]
    assert fails == ["Compatibility", "Independent contexts", "Entropy bound", "Gradient descent"]
    bound = found["Entropy bound"].numbers
    assert float(bound["infimum where separable"]) > float(bound["entropy"]) + 0.01


def test_opposite_demands_are_not_separable() -> None:
    found = checks([[1.0], [1.0]], [[1, 1, 0], [1, 0, 1]])
    assert found["Compatibility"].outcome == Outcome.HOLDS
    assert found["Separability"].outcome == Outcome.FAILS
    assert found["Gradient descent"].outcome == Outcome.FAILS


def test_a_batch_is_its_loop() -> None:
    data = am.decoders.random_next_words(6, 3, 6, 2, 5, name="checks")
    whole = am.theory.check_decoder(data)
    for k in range(5):
        for one, many in zip(am.theory.check_decoder(data[k]), whole, strict=True):
            assert one.outcome == many[k].outcome
