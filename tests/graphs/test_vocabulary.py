"""Names of tokens."""

import numpy as np

import attnmargin as am


def test_names_that_are_numbers_are_names() -> None:
    graphs = am.token_graphs([[20, 10]], [20], [10, 20, 30])
    assert graphs[10].components == [[1], [0]]
    assert str(am.graphs.Automaton(graphs).next([20, 10])) == "20: retrieval of 20 over 10"


def test_numbers_mean_the_same_in_lists_and_arrays() -> None:
    names = [1, 2, 0]
    first = am.token_graphs([[1, 2, 0]], [1], names)
    second = am.token_graphs(np.array([[1, 2, 0]]), np.array([1]), names)
    np.testing.assert_array_equal(first.token, second.token)
    np.testing.assert_array_equal(first.roots, second.roots)
    assert first[0].components == [[0], [1], [2]]  # ids of 1, 2 and 0
    assert am.graphs.Automaton(first).generate([2, 1, 0], 1) == ["2", "1", "0", "1"]
    assert am.token_graphs([[0, 1]], [0], np.array(2)).K == 2
