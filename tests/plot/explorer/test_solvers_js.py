"""The explorer's solvers in JavaScript give the answers of the library."""

import json
import math
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
import attnmargin.plot
from attnmargin.base.seeds import seed_of

MODULES = Path(attnmargin.plot.__file__).parent / "explorer" / "modules"
KINDS = ("plain", "grid", "copies", "line", "no query", "parallel queries", "same query")
# States of each kind: all in the Frobenius norm, the first ones in the others.
EACH, IN_NORMS = 40, 5
POWERS = (1.1, 1.75, 3.0, 10.0)
NORMS: tuple[str | float, ...] = ("nuc", *POWERS, "max", "spectral")
# States have at most so many sequences, tokens and dimensions; all are padded to that.
MOST = (5, 7, 4)
# Selections that Python enumerates for one state.
FEW = 150
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def _doubles(x: Any) -> Tensor:
    return torch.tensor(np.asarray(x, np.float64))


def _first(x: Tensor | None, *sizes: int) -> Tensor:
    assert x is not None
    return x[tuple(slice(size) for size in sizes)]


@dataclass
class State:
    """What one state of the page is, and what JavaScript says about it."""

    kind: str
    data: dict[str, Any]
    selection: list[int]
    local: bool
    norms: tuple[str | float, ...]
    answer: dict[str, Any]

    @cached_property
    def padded(self) -> am.AttentionData:
        """The same data; what is missing to the largest size is hidden."""
        n, T, d = MOST
        X, z, y, v = (_doubles(np.zeros(shape)) for shape in ((n, T, d), (n, d), n, d))
        mask = torch.zeros(n, T, dtype=torch.bool)
        for i, tokens in enumerate(self.data["X"]):
            X[i, : len(tokens), : len(tokens[0])] = _doubles(tokens)
            mask[i, : len(tokens)] = True
            z[i, : len(tokens[0])] = _doubles(self.data["z"][i])
        y[:] = 1.0
        y[: len(self.data["y"])] = _doubles(self.data["y"])
        v[: len(self.data["v"])] = _doubles(self.data["v"])
        return am.AttentionData(X, z, y, v, mask)

    @property
    def small(self) -> am.AttentionData:
        """The same data without hidden sequences and dimensions."""
        n, d = len(self.data["X"]), len(self.data["v"])
        T = max(len(tokens) for tokens in self.data["X"])
        full = self.padded
        parts = ((full.z, n, d), (full.y, n), (full.v, d), (full.mask, n, T))
        z, y, v, mask = (_first(x, *sizes) for x, *sizes in parts)
        return am.AttentionData(full.X[:n, :T, :d], z, y, v, mask.bool())


def _draw(kind: str, trial: int) -> State:
    generator = torch.Generator().manual_seed(seed_of("explorer", kind, trial))

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def whole(least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=generator))

    n, d = whole(1, MOST[0]), whole(2, MOST[2])
    X, z, v = [normal(whole(2, MOST[1]), d) for _ in range(n)], normal(n, d), normal(d)
    if kind == "grid":
        X, z, v = [(2 * x).round() / 2 for x in X], (2 * z).round() / 2, (2 * v).round() / 2
    elif kind == "copies":
        X = [torch.cat((x[:-1], x[:1])) for x in X]
    elif kind == "line":
        X = [x[:1] + normal(len(x), 1) * normal(1, d) for x in X]
    elif kind == "no query":
        z[whole(0, n - 1)] = 0.0
    elif kind == "parallel queries":
        z = z[:1] * normal(n, 1)
    elif kind == "same query":
        z = z[:1].expand(n, d)
    y = [float(2 * whole(0, 1) - 1) for _ in range(n)]
    data = {"X": [x.tolist() for x in X], "z": z.tolist(), "y": y, "v": v.tolist()}
    local = math.prod(len(x) for x in X) <= FEW and trial % 2 == 0
    norms = NORMS if trial < IN_NORMS else ()
    return State(kind, data, [whole(0, len(x) - 1) for x in X], local, norms, {})


@pytest.fixture(scope="module")
def states() -> list[State]:
    """Random and degenerate states with the answers of one run of node."""
    drawn = [_draw(kind, trial) for kind in KINDS for trial in range(EACH)]
    for k, state in enumerate(drawn):  # most other selections contradict themselves
        if k % 3:
            best = am.optimal_tokens(state.padded).tolist()
            state.selection = best[: len(state.selection)]
    asked = [
        {"data": s.data, "selection": s.selection, "norms": s.norms, "local": s.local}
        for s in drawn
    ]
    for state, answer in zip(drawn, _node(asked), strict=True):
        state.answer = answer
    return drawn


def _node(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert NODE is not None
    driver = str(Path(__file__).with_name("answer_solvers.mjs"))
    done = subprocess.run(
        [NODE, driver, str(MODULES)], input=json.dumps(asked), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def _problem(states: list[State]) -> am.MarginProblem:
    """The rows of all states as one batch."""
    parts = [(s.padded.X, s.padded.z, s.padded.mask) for s in states]
    X, z, mask = map(torch.stack, zip(*parts, strict=True))
    selection = torch.zeros(len(states), MOST[0], dtype=torch.int64)
    for k, state in enumerate(states):
        selection[k, : len(state.selection)] = torch.tensor(state.selection)
    return am.token_problem(X, z, selection, mask)


def _answers(
    states: list[State], problem: am.MarginProblem, found: list[dict[str, Any]]
) -> tuple[Tensor, Tensor]:
    """W and multipliers from JavaScript, padded as the problem is."""
    W = torch.zeros(len(states), *problem.shape, dtype=torch.float64)
    dual = torch.zeros(problem.bound.shape, dtype=torch.float64)
    for k, (state, own) in enumerate(zip(states, found, strict=True)):
        d = len(state.data["v"])
        W[k, :d, :d] = _doubles(own["W"]).reshape(d, d)
        dual[k, problem.mask[k]] = _doubles(own["dual"])
    return W, dual


def _same(x: Any, y: Any, share: float = 1e-9) -> bool:
    return np.allclose(
        np.asarray(x, float), np.asarray(y, float), rtol=share, atol=0, equal_nan=True
    )


def test_scores_and_optimal_tokens(states: list[State]) -> None:
    for state in states:
        gamma = am.scores(state.small)
        own = [gamma[i, : len(row)].tolist() for i, row in enumerate(state.answer["scores"])]
        assert all(map(_same, state.answer["scores"], own))
        assert state.answer["best"] == am.optimal_tokens(state.small).tolist()


def test_frobenius_solutions_are_those_of_python(states: list[State]) -> None:
    """Status, W, margin and support; where Python doubts the support, only the rest."""
    problem = _problem(states)
    solution = am.solve(problem)
    found = [state.answer["solution"] for state in states]
    assert [own["status"] for own in found] == solution.status.tolist()
    W, dual = _answers(states, problem, found)
    good = torch.as_tensor(solution.status == "optimal")
    assert 90 < int(good.sum()) < len(states) - 90
    distance = (W - solution.W)[good].norm(dim=(-2, -1))
    assert bool((distance <= 1e-9 * solution.value[good]).all())
    margin = solution.margin.where(~solution.infeasible, 0.0)
    for k in np.flatnonzero(solution.status != "inaccurate"):
        assert _same(found[k]["margin"], margin[k])
    assert am.certify(problem, "fro", W, dual).status.tolist() == solution.status.tolist()
    doubtful = solution.doubtful.any(-1)
    assert int(doubtful.sum()) < 5
    for k in (good & ~doubtful).nonzero().flatten().tolist():
        assert found[k]["support"] == solution.support[k, problem.mask[k]].tolist()
        assert found[k]["gap"] < 1e-11


def test_contradictions_have_few_rows(states: list[State]) -> None:
    """A basic proof has at most one row more than W has entries, and names its tokens."""
    for state in states:
        demands, d = state.answer["demands"], len(state.data["v"])
        if state.answer["solution"]["status"] != "infeasible":
            continue
        assert 1 <= len(demands) <= d * d + 1
        for row in demands:
            assert row["token"] == state.selection[row["sequence"]] != row["other"]
        weights = [row["weight"] for row in demands]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) == pytest.approx(1.0)


def test_equal_scores_stay_equal() -> None:
    data = {"X": [[[1e17, 1, -1e17], [0, 1, 0]]], "z": [[1, 0, 0]], "y": [1], "v": [1, 1, 1]}
    (answer,) = _node([{"data": data, "selection": [0], "norms": [], "local": False}])
    assert answer["scores"] == [[1, 1]]
    assert answer["best"] == [0]


def test_the_margin_by_hand() -> None:
    """Two axes part the selected token from two others, and each needs one entry of W."""
    data = {"X": [[[2, 0], [0, 0], [1, 0], [2, -9]]], "z": [[1, 0]], "y": [1], "v": [1, 1]}
    asked = {"data": data, "selection": [0], "norms": list(NORMS), "local": True}
    (answer,) = _node([asked])
    assert answer["solution"]["W"] == pytest.approx([1.0, 0.0, 1 / 9, 0.0], abs=1e-15)
    assert answer["solution"]["support"] == [False, True, True]
    assert answer["solution"]["value"] == pytest.approx(math.hypot(1, 1 / 9), rel=1e-15)
    values = [found["value"] for found in answer["norms"]]
    own = {"nuc": math.hypot(1, 1 / 9), "spectral": math.hypot(1, 1 / 9), "max": 1.0}
    expected = [own.get(str(p)) or (1 + 9.0 ** -float(p)) ** (1 / float(p)) for p in NORMS]
    assert values == pytest.approx(expected, rel=1e-9)
    assert [x["selection"] for x in answer["local"]["selections"]] == [[0]]


def test_a_planted_contradiction() -> None:
    """The same tokens and query with both labels: one wants the order that the other forbids."""
    data = {"X": [[[1, 0], [0, 1]]] * 2, "z": [[1, 1]] * 2, "y": [1, -1], "v": [1, 0]}
    (answer,) = _node([{"data": data, "selection": [0, 1], "norms": [], "local": True}])
    expected = [(0, 0, 1, 0.5), (1, 1, 0, 0.5)]
    assert [tuple(row.values()) for row in answer["demands"]] == expected
    assert answer["local"] == {"selections": [], "complete": True}


def test_local_selections_are_those_of_python(states: list[State]) -> None:
    asked = [state for state in states if state.local]
    assert len(asked) > 40
    for state in asked:
        found, expected = state.answer["local"], am.selections.local_selections(state.small)
        own = {tuple(x["selection"]): x["margin"] for x in found["selections"]}
        known = [tuple(x) for x in expected.selections.tolist()]
        assert set(own) == set(known)
        assert _same([own[selection] for selection in known], expected.margin)
        assert found["complete"]
        best = tuple(state.answer["best"])
        assert best not in own or tuple(found["selections"][0]["selection"]) == best
        margins = [float(x) for selection, x in own.items() if selection != best]
        assert margins == sorted(margins, reverse=True)


def test_a_limit_of_work_ends_the_search(states: list[State]) -> None:
    assert not any(state.answer["cut"] for state in states if state.kind == "plain")


@pytest.mark.parametrize("norm", ["nuc", *POWERS])
def test_other_norms_as_python_solves_them(states: list[State], norm: str | float) -> None:
    asked, found = _in_norm(states, norm)
    problem = _problem(asked)
    solution, (W, dual) = am.solve(problem, norm), _answers(asked, problem, found)
    assert [own["status"] for own in found] == solution.status.tolist()
    assert am.certify(problem, norm, W, dual).status.tolist() == solution.status.tolist()
    assert _same([own["value"] for own in found], solution.value, 2e-9)
    known = torch.as_tensor(solution.status == "optimal") & ~solution.doubtful.any(-1)
    for k in known.nonzero().flatten().tolist():
        assert found[k]["support"] == solution.support[k, problem.mask[k]].tolist()


@pytest.mark.parametrize("norm", ["nuc", *POWERS])
def test_certificates_of_any_weights(states: list[State], norm: str | float) -> None:
    """Half of W, but 0.9 of its first entry."""
    asked, found = _in_norm(states, norm)
    problem = _problem(asked)
    W, dual = _answers(asked, problem, found)
    W[:, 0, 0] *= 1.8
    expected = am.certify(problem, norm, 0.5 * W, dual)
    for k, own in enumerate(found):
        if own["status"] == "optimal":
            for name in ("primal", "lower", "upper"):
                assert _same(own["certificate"][name], getattr(expected, name)[k])
            assert float(own["certificate"]["gap"]) == pytest.approx(
                float(expected.gap[k]), abs=1e-12
            )


@pytest.mark.parametrize(("norm", "dual_norm"), [("max", "sum"), ("spectral", "nuc")])
def test_max_and_spectral_by_their_certificate(
    states: list[State], norm: str, dual_norm: str
) -> None:
    """Σλ / ‖Aᵀλ‖_dual ≤ min ‖W‖, evaluated by numpy; W holds all rows."""
    asked, found = _in_norm(states, norm)
    problem = _problem(asked)
    W, dual = _answers(asked, problem, found)
    rows, V = problem.apply(W), problem.adjoint(dual)
    for k, own in enumerate(found):
        if own["status"] == "infeasible":
            continue
        assert own["status"] == "optimal"
        lower = float(dual[k].sum()) / _value(dual_norm, V[k])
        upper = _value(norm, W[k])
        assert float(dual[k].min()) >= 0.0
        assert float(rows[k][problem.mask[k]].min()) >= 1.0 - 1e-12
        assert _same([own["value"], lower], [upper, upper])


def _in_norm(states: list[State], norm: str | float) -> tuple[list[State], list[dict[str, Any]]]:
    """The states that are solved in other norms and have rows, and their answers in one of them."""
    asked = [s for s in states if s.norms and float(s.answer["norms"][0]["value"]) != 0.0]
    return asked, [state.answer["norms"][NORMS.index(norm)] for state in asked]


def _value(norm: str, W: Tensor) -> float:
    singular = torch.linalg.svdvals(W)
    values = {
        "max": W.abs().max(),
        "sum": W.abs().sum(),
        "spectral": singular[0],
        "nuc": singular.sum(),
    }
    return float(values[norm])


@pytest.mark.parametrize("norm", ["max", "spectral"])
def test_max_and_spectral_by_cvxpy(states: list[State], norm: str) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    asked, found = _in_norm(states, norm)
    problem = _problem(asked)
    for k in range(0, len(asked), 4):
        left, right = (x[k][problem.mask[k]].numpy() for x in (problem.left, problem.right))
        W = cvxpy.Variable(problem.shape)
        length = cvxpy.max(cvxpy.abs(W)) if norm == "max" else cvxpy.sigma_max(W)
        rows = cvxpy.sum(cvxpy.multiply(left @ W, right), axis=1) >= 1
        value = cvxpy.Problem(cvxpy.Minimize(length), [rows]).solve(solver="CLARABEL")
        assert math.isinf(value) == (found[k]["status"] == "infeasible")
        assert math.isinf(value) or _same(found[k]["value"], value, 1e-5)
