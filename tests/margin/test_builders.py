"""Builders against loops written from the papers' formulas."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.margin.explain import row_words

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5))
Z = RNG.standard_normal((3, 5))


def rows_of(problem: am.MarginProblem) -> dict[tuple[int, ...], tuple[torch.Tensor, float, bool]]:
    """Existing rows by (sequence, position, chosen, other): matrix, bound, equality."""
    found = {}
    for m in range(problem.M):
        if problem.mask[m]:
            names = problem.names
            key = tuple(
                int(x[m]) for x in (names.sequence, names.position, names.chosen, names.other)
            )
            matrix = torch.outer(problem.left[m], problem.right[m])
            found[key] = (matrix, float(problem.bound[m]), bool(problem.equality[m]))
    return found


def check(problem: am.MarginProblem, expected: Mapping[Any, Any]) -> None:
    found = rows_of(problem)
    assert found.keys() == expected.keys()
    for key, (matrix, bound, equality) in expected.items():
        torch.testing.assert_close(found[key][0], torch.as_tensor(matrix))
        assert found[key][1] == pytest.approx(bound)
        assert found[key][2] == equality


def test_one_token_per_sequence() -> None:
    alpha = [2, 0, 3]
    expected = {
        (i, -1, alpha[i], t): (np.outer(X[i, alpha[i]] - X[i, t], Z[i]), 1.0, False)
        for i in range(3)
        for t in range(4)
        if t != alpha[i]
    }
    problem = am.token_problem(X, Z, alpha)
    check(problem, expected)
    assert problem.M == 3 * 3


def test_sets_give_one_representative_and_equalities() -> None:
    chosen = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    expected = {}
    for i in range(3):
        first = int(np.argmax(chosen[i]))
        for t in range(4):
            if t != first:
                matrix = np.outer(X[i, first] - X[i, t], Z[i])
                tied = bool(chosen[i, t])
                expected[i, -1, first, t] = (matrix, 0.0 if tied else 1.0, tied)
    check(am.token_problem(X, Z, chosen), expected)


def test_causal_queries_see_only_the_past() -> None:
    queries = np.random.default_rng(1).standard_normal((3, 4, 5))
    causal = np.tril(np.ones((4, 4), bool))
    alpha = np.array([[0, 1, 0, 2], [0, 0, 2, 3], [0, 1, 1, 1]])
    expected = {
        (i, k, alpha[i, k], t): (np.outer(X[i, alpha[i, k]] - X[i, t], queries[i, k]), 1.0, False)
        for i in range(3)
        for k in range(4)
        for t in range(k + 1)
        if t != alpha[i, k]
    }
    check(am.token_problem(X, queries, alpha, np.broadcast_to(causal, (3, 4, 4))), expected)


def test_hidden_tokens_have_no_rows() -> None:
    mask = np.ones((3, 4), bool)
    mask[0, 1:3] = False
    problem = am.token_problem(X, Z, [0, 0, 0], mask)
    assert {key[3] for key in rows_of(problem) if key[0] == 0} == {3}


def test_a_fully_hidden_sequence_has_no_rows() -> None:
    mask = np.ones((3, 4), bool)
    mask[1] = False
    problem = am.token_problem(X, Z, [0, 2, 0], mask)
    assert {key[0] for key in rows_of(problem)} == {0, 2}
    assert am.solve(problem).status == "optimal"


def test_list_of_sequences_equals_padding() -> None:
    ragged = am.token_problem([X[0], X[1, :2]], Z[:2], [1, 1])
    assert set(rows_of(ragged)) == {(0, -1, 1, 0), (0, -1, 1, 2), (0, -1, 1, 3), (1, -1, 1, 0)}


def test_many_selections_of_one_instance() -> None:
    alphas = np.array([[0, 0, 0], [1, 2, 3]])
    problem = am.token_problem(X, Z, alphas)
    assert problem.batch_shape == (2,)
    for b in range(2):
        check(problem[b], rows_of(am.token_problem(X, Z, alphas[b])))


def test_finite_part_has_log_ratios() -> None:
    s = np.array([[0.5, 0.25, 0.25, 0.0], [1.0, 0, 0, 0], [0.0, 0.2, 0.0, 0.8]])
    expected = {}
    for i, first in enumerate((0, 0, 1)):
        for t in range(4):
            if t != first and s[i, t] > 0:
                matrix = np.outer(X[i, first] - X[i, t], Z[i])
                expected[i, -1, first, t] = (matrix, np.log(s[i, first] / s[i, t]), True)
    check(am.finite_problem(X, Z, s), expected)


def test_finite_part_gives_the_probabilities_back() -> None:
    s = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    W = am.solve(am.finite_problem(X, Z, s)).raise_for_status().W
    logits = torch.einsum("ntd,de,ne->nt", torch.as_tensor(X), W, torch.as_tensor(Z))
    torch.testing.assert_close(logits.softmax(-1), torch.as_tensor(s), rtol=1e-10, atol=1e-12)


def test_label_rows() -> None:
    y = np.array([1, -1, 1])
    problem = am.label_problem(X, y, [0, 1, 2])
    expected = {(i, -1, i, -1): (y[i] * X[i, i][:, None], 1.0, False) for i in range(3)}
    check(problem, expected)
    assert am.solve(problem).vector.shape == (5,)


def test_embedding_rows_count_copies_of_a_token_as_selected() -> None:
    E = np.random.default_rng(1).standard_normal((6, 3))
    ids = [[0, 1, 0, 2], [3, 4, 4, 5]]
    problem = am.embedding_problem(E, ids, [0, 1])
    expected = {
        (0, -1, 0, 1): ((E[0] - E[1])[:, None], 1.0, False),
        (0, -1, 0, 2): (np.zeros((3, 1)), 0.0, True),
        (0, -1, 0, 3): ((E[0] - E[2])[:, None], 1.0, False),
        (1, -1, 1, 0): ((E[4] - E[3])[:, None], 1.0, False),
        (1, -1, 1, 2): (np.zeros((3, 1)), 0.0, True),
        (1, -1, 1, 3): ((E[4] - E[5])[:, None], 1.0, False),
    }
    check(problem, expected)


def test_embedding_of_unequal_sequences() -> None:
    E = np.random.default_rng(1).standard_normal((4, 3))
    problem = am.embedding_problem(E, [[0, 1, 2], [3, 1]], [0, 0])
    assert set(rows_of(problem)) == {(0, -1, 0, 1), (0, -1, 0, 2), (1, -1, 0, 1)}


def test_embedding_solution_is_the_attention_svm_with_query_one() -> None:
    E = np.random.default_rng(1).standard_normal((4, 3))
    ids = np.array([[0, 1, 2], [3, 1, 2]])
    p = am.solve(am.embedding_problem(E, ids, [0, 0])).vector
    rows = am.margin_problem([E[0] - E[1], E[0] - E[2], E[3] - E[1], E[3] - E[2]], np.ones((4, 1)))
    torch.testing.assert_close(p, am.solve(rows).vector)


def test_rows_speak() -> None:
    several = am.token_problem(X, X, np.ones((3, 4, 4), bool))
    assert row_words(several, 4) == "sequence 0, query 1 wants tokens 0 and 2 level"
    assert (
        row_words(am.token_problem(X, Z, [1, 1, 1]), 3) == "sequence 1 wants token 1 over token 0"
    )
    assert row_words(am.label_problem(X, [1, 1, 1], [0, 2, 0]), 1) == (
        "sequence 1 wants its label from token 2"
    )
    assert row_words(am.finite_problem(X, Z, np.tile([0.8, 0.2, 0, 0], (3, 1))), 0) == (
        "sequence 0 wants tokens 0 and 1 1.39 apart"
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype: torch.dtype) -> None:
    tokens, queries = torch.as_tensor(X).to(dtype), torch.as_tensor(Z).to(dtype)
    problem = am.token_problem(tokens, queries, [0, 0, 0])
    assert {problem.left.dtype, problem.query.dtype, problem.bound.dtype} == {dtype}


HIDE = np.arange(4) < np.array([[4], [2], [4]])


WRONG = {
    "index too large": (
        lambda: am.token_problem(X, Z, [0, 4, 0]),
        "selection: got tokens from 0 to 4; needs tokens from 0 to 3",
    ),
    "index negative": (
        lambda: am.token_problem(X, Z, [0, -1, 0]),
        "selection: got tokens from -1 to 0",
    ),
    "index count": (lambda: am.token_problem(X, Z, [0, 0]), "selection: got shape (2,)"),
    "index words": (lambda: am.token_problem(X, Z, ["a", "b", "c"]), "selection: got <U1 entries"),
    "index nothing": (lambda: am.token_problem(X, Z, None), "selection: got object entries"),
    "index too deep": (lambda: am.token_problem(X, Z, [[0], [0, 1]]), "a list of unequal lengths"),
    "complex": (
        lambda: am.token_problem(torch.ones(1, 2, 2) * 1j, Z, [0]),
        "X: got a torch.complex64 tensor",
    ),
    "masked array": (
        lambda: am.token_problem(np.ma.masked_less(X, 0), Z, [0, 0, 0]),
        "X: got a numpy masked array",
    ),
    "ids not whole": (
        lambda: am.embedding_problem(np.ones((2, 3)), [[0.5, 1.0], [0]], [0, 0]),
        "sequences[0]: got torch.float64 entries",
    ),
    "index float": (lambda: am.token_problem(X, Z, [0.0, 1.0, 2.0]), "needs whole numbers"),
    "set shape": (
        lambda: am.token_problem(X, Z, np.ones((3, 3), bool)),
        "selection: got shape (3, 3)",
    ),
    "set empty": (lambda: am.token_problem(X, Z, np.zeros((3, 4), bool)), "no token in sequence 0"),
    "hidden": (
        lambda: am.token_problem(X, Z, [0, 3, 0], HIDE),
        "a token that the mask hides in sequence 1",
    ),
    "batches": (
        lambda: am.token_problem(X[None][[0, 0]], Z[None][[0, 0, 0]], [0, 0, 0]),
        "batch dimensions",
    ),
    "causal mask": (
        lambda: am.token_problem(X, X, np.zeros((3, 4), int), np.ones((3, 2, 4), bool)),
        "one for each of the 4",
    ),
    "probability": (lambda: am.finite_problem(X, Z, -np.ones((3, 4))), "probability: got -1"),
    "probability zero": (
        lambda: am.finite_problem(X, Z, np.zeros((3, 4))),
        "probability: got no token in sequence 0",
    ),
    "labels": (lambda: am.label_problem(X, [1, 1], [0, 0, 0]), "y: got shape (2,)"),
    "label zero": (lambda: am.label_problem(X, [1, 0, 1], [0, 0, 0]), "y: got the label 0"),
    "label sets": (
        lambda: am.label_problem(X, [1, 1, 1], np.ones((3, 4), bool)),
        "several tokens in sequence 0",
    ),
    "ids": (
        lambda: am.embedding_problem(np.ones((2, 3)), [[0, 2]], [0]),
        "sequences: got token id 2; needs ids from 0 to 1",
    ),
    "embeddings": (lambda: am.embedding_problem(np.ones(3), [[0]], [0]), "E: got shape (3,)"),
    "rows": (
        lambda: am.margin_problem(np.ones((3, 2)), np.ones((2, 2))),
        "right: got 2 factors for 3 rows",
    ),
    "bound": (
        lambda: am.margin_problem(np.ones((3, 2)), np.ones((3, 2)), np.ones(2)),
        "bound: got shape (2,)",
    ),
    "bound NaN": (
        lambda: am.margin_problem(np.ones((1, 2)), np.ones((1, 2)), np.nan),
        "bound: got nan",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_thing(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(am.InputError) as caught:
        call()
    assert words in str(caught.value)


def test_selections_of_any_memory_layout() -> None:
    reverse = np.array([3, 2, 1])[::-1]
    expected = am.token_problem(X, Z, [1, 2, 3])
    for selection in (reverse, reverse.astype(">i8"), tuple(reverse), torch.tensor([1, 2, 3])):
        assert torch.equal(am.token_problem(X, Z, selection).left, expected.left)


@pytest.mark.parametrize(("dtype", "offset"), [(torch.float64, 1e7), (torch.float32, 300.0)])
@pytest.mark.parametrize("norm", ["fro", "nuc", 3.0])
def test_an_offset_of_all_tokens_costs_no_bit(
    norm: str | float, dtype: torch.dtype, offset: float
) -> None:
    """Tokens on a grid, where adding the offset is exact: rows are differences, so the same."""
    data = am.random_data(3, 4, 6, trials=5, name="offset")
    X = ((data.X * 2**10).round() / 2**10).to(dtype)
    selection = am.optimal_tokens(data)
    near, far = (
        am.solve(am.token_problem(tokens, data.z.to(dtype), selection), norm)
        for tokens in (X, X + offset)
    )
    assert torch.equal(near.W.nan_to_num(), far.W.nan_to_num())
    assert torch.equal(near.dual, far.dual)
