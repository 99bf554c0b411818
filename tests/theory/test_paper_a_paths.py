"""Regularisation paths of paper A and factors of width m, on data where the answer is known."""

import pytest
import torch

import attnmargin as am
from tests.instances import contradiction, identity_data
from tests.problems import clarabel_value, optimal_problem

HOLDS, FAILS = am.theory.Outcome.HOLDS, am.theory.Outcome.FAILS
OPEN = am.theory.Outcome.UNDECIDABLE


def checks(data: am.AttentionData, *args: object, **how: object) -> dict[str, am.theory.Check]:
    found = am.theory.check_theory(data, *args, **how)  # type: ignore[arg-type]
    return {check.label: check for check in found}


def two_entries() -> am.AttentionData:
    """W₁₁ ≥ 1 and W₂₂ ≥ 1: the nuclear solutions are [[1, c], [c, 1]], |c| ≤ 1, of rank 1 or 2."""
    X = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]
    return am.AttentionData(X, [[1.0, 0.0], [0.0, 1.0]], [1, 1], [1.0, 1.0])


def test_lemma_3_is_about_all_solutions() -> None:
    data = two_entries()
    wide, thin = (checks(data, "KQ", width=m)["A: Lemma 3"] for m in (2, 1))
    assert wide.outcome == HOLDS
    assert thin.outcome != HOLDS  # a solution of rank 2 is lost
    assert float(thin.numbers["no solution has a larger rank than"]) == 2.0
    assert float(thin.numbers["width m"]) == 1.0


def test_lemma_3_where_the_solution_is_unique() -> None:
    data = am.random_data(4, 4, 6, trials=3, name="unique")
    solution = am.solve(optimal_problem(data), "nuc")
    assert set(am.uniqueness(solution)) == {"unique"}
    for k in range(3):
        rank = int(torch.linalg.matrix_rank(solution.W[k], rtol=1e-6))
        own = [checks(data[k], "KQ", width=m)["A: Lemma 3"].outcome for m in (rank, rank - 1)]
        assert own == [HOLDS, FAILS] if rank > 1 else own[0] == HOLDS
    K = torch.ones(6, 5).double()
    assert float(checks(data[0], "KQ", init=(K, K))["A: Lemma 3"].numbers["width m"]) == 5.0


def test_lemma_15_at_factors_of_a_matrix() -> None:
    """½ (‖K‖² + ‖Q‖²) is ‖W‖⋆ for the factors of the singular values, and more for all others."""
    data, generator = am.random_data(2, 3, 4, name="lemma 15"), torch.Generator().manual_seed(0)
    U, S, V = torch.linalg.svd(torch.randn(4, 4, generator=generator).double())
    K, Q = U * S.sqrt(), V.mT * S.sqrt()
    names = ("½ (‖K‖² + ‖Q‖²) of the start", "‖K Qᵀ‖⋆")
    check = checks(data, "KQ", init=(K, Q))["A: Lemma 15"]
    assert check.outcome == HOLDS
    assert [float(check.numbers[x]) for x in names] == pytest.approx([float(S.sum())] * 2)
    for seed in range(5):
        A = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)).double()
        other = checks(data, "KQ", init=(K @ A, Q @ torch.linalg.inv(A).mT))["A: Lemma 15"]
        assert float(other.numbers[names[0]]) > float(S.sum()) + 1e-3
        assert float(other.numbers[names[1]]) == pytest.approx(float(S.sum()))
    assert checks(data)["A: Lemma 15"].outcome == OPEN


def test_theorem_10_and_its_corollaries_with_several_queries() -> None:
    """The margin by a conic solver; several queries per sequence, in every norm."""
    generator = torch.Generator().manual_seed(3)
    X, z = (torch.randn(2, k, 5, generator=generator).double() for k in (3, 2))
    v = torch.randn(5, generator=generator).double()
    data = am.AttentionData(X, z, torch.tensor([[1.0, -1.0], [1.0, 1.0]]).double(), v)
    found = checks(data)
    value = clarabel_value(am.token_problem(X, z, am.optimal_tokens(data)))
    assert value is not None
    for name in ("Theorem 10", "Corollary 1", "Corollary 2"):
        assert found[f"A: {name}"].outcome == HOLDS, name
        assert float(found[f"A: {name}"].numbers["margin"]) == pytest.approx(1.0 / value, rel=1e-6)
    assert float(found["A: Theorem 10"].numbers["R₀ (the path begins at this norm)"]) == 0.0
    cubic = checks(data, p=3.0)
    assert [cubic[f"A: {x}"].outcome for x in ("Corollary 1", "Corollary 2")] == [HOLDS, OPEN]


def test_corollaries_need_separable_tokens_of_unique_score() -> None:
    for data in (contradiction(), identity_data((1, 1), (3.0, 3.0, 1.0))):
        found = checks(data)
        for name in ("Corollary 1", "Corollary 2"):
            assert found[f"A: {name}"].outcome == FAILS
