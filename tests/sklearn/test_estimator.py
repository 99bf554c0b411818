"""MaxMarginAttention: closed form, the library itself, every shape of X, scikit-learn's tools."""

import importlib
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import attnmargin as am
from attnmargin.sklearn import MaxMarginAttention, estimator

DATA = am.random_data(6, 5, 4, name="sklearn")
X, Z = DATA.X.numpy(), DATA.z.numpy()
RAGGED = [x[: 2 + i % 3] for i, x in enumerate(X)]  # 2, 3, 4, 2, 3, 4 tokens
FOLDS = KFold(4)


def _planted(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sequences ``(n, 5, 3)``, and the tokens of largest logit under random weights."""
    rng = np.random.default_rng(1)
    tokens, W = rng.normal(size=(n, 5, 3)), rng.normal(size=(3, 3))
    return tokens, np.einsum("ntd,de,ne->nt", tokens, W, tokens[:, 0]).argmax(-1)


def test_one_sequence_has_a_closed_form() -> None:
    model = MaxMarginAttention().fit([[[1.0, 0.0], [0.0, 0.0], [-9.0, 0.0]]], [0], z=[[0.0, 2.0]])
    assert_allclose(model.W_, [[0.0, 0.5], [0.0, 0.0]], atol=1e-15)
    assert model.margin_ == pytest.approx(2.0)
    assert_array_equal(model.support_tokens_, [[False, True, False]])
    assert_array_equal(model.support_, [0])
    assert_array_equal(model.classes_, [0, 1, 2])
    assert (model.status_, model.n_features_in_) == ("optimal", 2)


@pytest.mark.parametrize("norm", ["fro", "nuc", 3.0])
def test_the_weights_are_those_of_solve(norm: str | float) -> None:
    y = am.optimal_tokens(DATA)
    solution = am.solve(am.token_problem(X, Z, y), norm)
    model = MaxMarginAttention(norm).fit(X, y.numpy(), z=Z)
    assert_array_equal(model.W_, solution.W.numpy())
    assert model.margin_ == pytest.approx(float(solution.margin))
    assert_array_equal(model.support_tokens_, am.selections.support_tokens(solution).numpy())
    assert_array_equal(model.decision_function(X, z=Z), am.logits(DATA, solution.W).numpy())
    assert_array_equal(model.predict_proba(X, z=Z), am.probabilities(DATA, solution.W).numpy())
    assert_array_equal(model.predict(X, z=Z), y)
    assert model.score(X, y, z=Z) == 1.0


@pytest.mark.parametrize(
    ("query", "z"), [("first", X[:, 0]), ("last", X[:, -1]), ("mean", X.mean(1))]
)
def test_the_query_is_a_token_or_the_mean(query: str, z: NDArray[np.float64]) -> None:
    y = [0, 1, 2, 3, 4, 0]
    own, given = MaxMarginAttention(query=query, C=1.0), MaxMarginAttention(C=1.0)
    assert_allclose(own.fit(X, y).W_, given.fit(X, y, z=z).W_, atol=1e-14)
    assert_allclose(own.predict_proba(X), given.predict_proba(X, z=z), atol=1e-14)


@pytest.mark.parametrize("query", ["first", "last", "mean"])
def test_hidden_tokens_do_not_ask(query: str) -> None:
    mask = np.ones((6, 5), dtype=bool)
    mask[:, [0, 4]] = False
    y = np.array([1, 2, 3, 1, 2, 3])
    masked = MaxMarginAttention(query=query, C=1.0).fit(X, y, mask=mask)
    short = MaxMarginAttention(query=query, C=1.0).fit(X[:, 1:4], y - 1)
    assert_allclose(masked.W_, short.W_, atol=1e-12)
    assert_array_equal(np.isinf(masked.decision_function(X, mask=mask)), ~mask)
    assert_allclose(masked.predict_proba(X, mask=mask)[:, 1:4], short.predict_proba(X[:, 1:4]))
    assert_array_equal(masked.predict(X, mask=mask), short.predict(X[:, 1:4]) + 1)


def test_lists_are_arrays_with_a_mask() -> None:
    mask = np.arange(5)[:4] < np.array([len(x) for x in RAGGED])[:, None]
    y = [1, 2, 3, 1, 2, 3]
    array = MaxMarginAttention(C=1.0).fit(X[:, :4], y, mask=mask)
    objects = np.empty(6, dtype=object)
    objects[:] = RAGGED
    for sequences in (RAGGED, [x.tolist() for x in RAGGED], objects, tuple(RAGGED)):
        model = MaxMarginAttention(C=1.0).fit(sequences, y)
        assert_array_equal(model.W_, array.W_)
        logits = model.decision_function(sequences)
        assert_array_equal(logits, array.decision_function(X[:, :4], mask=mask))


def test_rows_of_a_table_are_tokens_one_after_the_other() -> None:
    y = [0, 1, 2, 3, 4, 0]
    deep, flat = MaxMarginAttention(C=1.0).fit(X, y), MaxMarginAttention(C=1.0, width=np.int64(4))
    assert_array_equal(flat.fit(X.reshape(6, 20), y).W_, deep.W_)
    assert_array_equal(flat.predict(X.reshape(6, 20)), deep.predict(X))
    assert_array_equal(flat.predict(X), deep.predict(X))
    assert (deep.n_features_in_, flat.n_features_in_) == (4, 20)


def test_tables_have_names_until_the_next_fit() -> None:
    table = pyarrow.table({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    model = MaxMarginAttention(width=1).fit(table, [0, 0])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.rename_columns(["b", "a"]))
    assert not hasattr(model.fit(X[:2], [0, 0]), "feature_names_in_")


def test_sets_tie_and_score_by_membership() -> None:
    tokens = np.array([[[2.0, 1.0], [2.0, -1.0], [0.0, 0.0]], [[0.0, 1.0], [3.0, 0.0], [3.0, 1.0]]])
    sets = np.array([[True, True, False], [False, True, True]])
    z = [[1.0, 0.0], [1.0, 0.0]]
    model = MaxMarginAttention().fit(tokens, sets, z=z)
    assert_allclose(model.predict_proba(tokens, z=z)[0, :2], [0.4223, 0.4223], atol=1e-4)
    assert model.score(tokens, sets, z=z) == 1.0
    assert model.score(tokens, ~sets, z=z) == 0.0
    assert model.score(tokens, [0, 0], z=z, sample_weight=[3.0, 1.0]) == 0.75


def test_one_token_needs_no_weights() -> None:
    model = MaxMarginAttention().fit(X[:, :1], [0] * 6)
    assert (model.W_ == 0).all()
    assert model.margin_ == np.inf
    assert model.support_.size == 0
    assert_array_equal(model.predict_proba(X[:, :1]), np.ones((6, 1)))


def test_weights_of_any_input_are_float64() -> None:
    y = [0, 1, 2, 3, 4, 0]
    single = X.astype(np.float32)
    reference = MaxMarginAttention(C=1.0).fit(single.astype(np.float64), y).W_
    for tokens in (single, torch.from_numpy(single)):
        assert_array_equal(MaxMarginAttention(C=1.0).fit(tokens, torch.tensor(y)).W_, reference)


def test_a_contradiction_is_named() -> None:
    clash = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    text = "sequence 0 wants token 0 over token 1, sequence 1 the reverse, .*; a finite C"
    with pytest.raises(am.InfeasibleError, match=text):
        MaxMarginAttention().fit(clash, [0, 1], z=[[1.0, 1.0]] * 2)
    with_slack = MaxMarginAttention(C=1.0).fit(clash, [0, 1], z=[[1.0, 1.0]] * 2)
    assert np.abs(with_slack.W_).max() < 1e-12  # each sequence would pay for what the other gains


def test_an_inaccurate_solution_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(problem: am.MarginProblem, norm: am.Norm) -> am.Solution:
        exact = am.solve(problem, norm)
        W = 1.001 * exact.W
        return replace(exact, W=W, certificate=am.certify(problem, norm, W, exact.dual))

    monkeypatch.setattr(estimator, "solve", longer)
    with pytest.warns(ConvergenceWarning, match="neither an optimum nor a contradiction"):
        model = MaxMarginAttention().fit(X, am.optimal_tokens(DATA), z=Z)
    assert model.status_ == "inaccurate"


def test_copies_and_pickles_predict_the_same() -> None:
    tokens, y = _planted(8)
    model = MaxMarginAttention(3.0, query="mean", C=2.0)
    assert model.fit(tokens, y) is model
    assert model.get_params() == {"C": 2.0, "norm": 3.0, "query": "mean", "width": None}
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(tokens), model.predict_proba(tokens))
    assert again.solution_.status == "optimal"
    copy = clone(model).set_params(norm="fro")
    assert not hasattr(copy, "W_")
    assert copy.fit(tokens, y).norm == "fro"


def test_read_only_memory_is_enough(tmp_path: Path) -> None:
    tokens, y = _planted(8)
    stored = [tmp_path / "X.joblib", tmp_path / "y.joblib"]
    for path, array in zip(stored, (tokens, y), strict=True):
        joblib.dump(array, path)
    mapped = [joblib.load(path, mmap_mode="r") for path in stored]
    assert_array_equal(MaxMarginAttention().fit(*mapped).W_, MaxMarginAttention().fit(tokens, y).W_)


def test_a_pipeline_is_cross_validated() -> None:
    tokens, y = _planted(120)
    table = tokens.reshape(120, 15)
    model = make_pipeline(StandardScaler(), MaxMarginAttention(C=10.0, width=3))
    assert cross_val_score(model, table, y, cv=FOLDS).mean() > 0.75
    shuffled = np.random.default_rng(0).permutation(y)
    assert cross_val_score(model, table, shuffled, cv=FOLDS).mean() < 0.4  # chance: 0.2


def test_grids_search_sequences() -> None:
    tokens, y = _planted(60)
    wrong = y.copy()
    wrong[::10] = (y[::10] + 1) % 5
    grid = GridSearchCV(MaxMarginAttention(), {"C": [1e-3, 1.0, np.inf]}, cv=FOLDS)
    with pytest.warns((FitFailedWarning, UserWarning)):
        grid.fit(list(tokens), wrong)
    scores = grid.cv_results_["mean_test_score"]
    assert np.isnan(scores[2])  # no W makes all these selections
    assert grid.score(tokens, y) > 0.9


def test_queries_are_routed() -> None:
    tokens, _ = _planted(60)
    z = np.random.default_rng(2).normal(size=(60, 3))
    y = np.einsum("ntd,nd->nt", tokens, z).argmax(-1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = MaxMarginAttention().set_fit_request(z=True).set_score_request(z=True)
        routed = cross_val_score(model, tokens, y, cv=FOLDS, params={"z": z})
    looped = [
        model.fit(tokens[a], y[a], z=z[a]).score(tokens[b], y[b], z=z[b])
        for a, b in FOLDS.split(tokens)
    ]
    assert_array_equal(routed, looped)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("attnmargin.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(am.MissingPackageError, match=r'pip install "attnmargin\[sklearn\]"'):
        importlib.import_module("attnmargin.sklearn")


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "norm": ({"norm": "trace"}, {}, "norm: got 'trace'; needs"),
    "price": ({"C": 0}, {}, "C: got 0; needs a number above 0"),
    "price of nuclear": ({"C": 1, "norm": "nuc"}, {}, "C: got 1 with norm 'nuc'; needs inf"),
    "query": ({"query": "cls"}, {}, "query: got 'cls'; needs 'first'"),
    "table": ({}, {"X": X[:, 0]}, r"X: got shape \(6, 4\); needs \(n, T, d\), or the param"),
    "width": ({"width": 0}, {"X": X[:, 0]}, "width: got 0; needs a whole number"),
    "columns": ({"width": 3}, {"X": X[:, 0]}, "X: got 4 columns; needs a multiple of width = 3"),
    "batch": ({}, {"X": X[None]}, r"X: got shape \(1, 6, 5, 4\); needs one array"),
    "not finite": ({}, {"X": X * np.nan}, r"X: got nan at \(0, 0, 0\)"),
    "words": ({}, {"X": [[["a"]]]}, "needs real numbers"),
    "uneven": ({}, {"X": [[[1.0], [1.0, 2.0]]] * 6}, "got a list of unequal lengths"),
    "queries": ({}, {"z": Z[:, :3]}, r"z: got shape \(6, 3\)"),
    "many queries": ({}, {"z": X}, r"z: got shape \(6, 5, 4\); needs one query per sequence"),
    "mask": ({}, {"mask": np.ones((6, 4), bool)}, r"mask: got shape \(6, 4\)"),
    "deep mask": ({}, {"mask": np.ones((6, 1, 5), bool)}, "mask: got .* one mask per sequence"),
    "blind": ({}, {"mask": np.eye(6, 5, dtype=bool)}, "mask: got no visible token in sequence 5"),
    "hidden": ({}, {"mask": np.eye(5)[[1] * 6] > 0}, "y: got a token that the mask hides"),
    "beyond": ({}, {"y": [0, 0, 0, 0, 0, 5]}, "y: got tokens from 0 to 5; needs tokens from 0 to"),
    "too few": ({}, {"y": [0, 0]}, r"y: got shape \(2,\); needs one token per query, \(6,\)"),
    "names": ({}, {"y": list("abcdef")}, "y: got str_ labels; needs positions of tokens"),
    "fractions": ({}, {"y": [0.5] * 6}, "Unknown label type: continuous"),
    "one-hot": ({}, {"y": np.eye(6, 5, dtype=int)}, "y should be a 1d array"),
    "no y": ({}, {"y": None}, "y should be a 1d array"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_one_wrong_thing_is_one_sentence(wrong: str) -> None:
    parameters, arguments, text = WRONG[wrong]
    working = {"X": X, "y": [0] * 6, "z": Z, "mask": None}
    with pytest.raises(ValueError, match=text):
        MaxMarginAttention(**parameters).fit(**(working | arguments))


def test_new_sequences_have_the_width_of_the_weights() -> None:
    model = MaxMarginAttention(C=1.0).fit(X, [0] * 6)
    assert model.predict_proba(X[:2, :3]).shape == (2, 3)
    with pytest.raises(am.InputError, match="X: got tokens of width 3; needs 4, as in fit"):
        model.predict(X[..., :3])
