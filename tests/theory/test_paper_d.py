"""Checks of paper D on data where the answer is known."""

import numpy as np
import pytest

import attnmargin as am


def test_checks_of_paper_d() -> None:
    data = am.embeddings.important_tokens(4, 3, seed=0)
    checks = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(data, d=512), lr=1.0)
    }
    assert list(checks) == ["Definition 1", "Assumption 4", "Lemma 2", "Theorem 5", "Lemma 6",
                            "Lemma 19"]  # fmt: skip
    found = {name: str(check.outcome) for name, check in checks.items()}
    assert [found[name] for name in ("Assumption 4", "Lemma 2")] == ["holds", "holds"]
    assert [found[name] for name in ("Theorem 5", "Lemma 6", "Lemma 19")] == ["fails"] * 3
    numbers = checks["Theorem 5"].numbers
    assert float(numbers["η₀ that it asks for"]) == 4 * 4**2 * 3**2
    assert float(numbers["log₁₀ of the d that it asks for"]) == pytest.approx(8 * np.log10(201))
    other = am.embeddings.LabelledTokens(
        data.ids, -data.y * np.array([1, -1, 1, 1]), data.vocabulary
    )
    again = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(other, d=16), lr=1.0)
    }
    assert str(again["Assumption 4"].outcome) == "fails"
    assert str(again["Lemma 19"].outcome) == "not decidable here"
