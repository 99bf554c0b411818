"""The explorer's JavaScript trains, proves and predicts what the library does."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attnmargin as am

HERE = Path(__file__).parent
MODULES = Path(am.__file__).parent / "plot" / "explorer" / "modules"
VERDICTS = ["undecided", "conjectured", "guaranteed from this start", "guaranteed"]
METHODS: list[dict[str, Any]] = [
    {"method": "gd"},
    {"method": "gd", "parameter": "KQ"},
    *({"method": "mirror", "p": p} for p in (1.1, 1.5, 3.0, 10.0)),
    *({"method": "steepest", "norm": norm} for norm in ("max", "spectral", "fro")),
    *({"method": "gd", "loss": loss} for loss in ("exponential", "linear", "squared")),
]

Ask = Callable[[list[dict[str, Any]]], list[Any]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    folder = tmp_path_factory.mktemp("modules")
    for module in MODULES.glob("*.js"):
        shutil.copy(module, folder)
    (folder / "package.json").write_text('{"type": "module"}')

    def answers(tasks: list[dict[str, Any]]) -> list[Any]:
        command = [node, str(HERE / "answer_training.mjs"), str(folder)]
        done = subprocess.run(
            command, input=json.dumps(tasks), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    return answers


def drawn(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def instances(B: int, n: int, T: int, d: int, seed: int) -> am.AttentionData:
    y = drawn(B, n, seed=seed + 2).sign()
    return am.AttentionData(
        drawn(B, n, T, d, seed=seed), drawn(B, n, d, seed=seed + 1), y, drawn(B, d, seed=seed + 3)
    )


def plain(data: am.AttentionData, k: int) -> dict[str, Any]:
    """An instance as the page has it: hidden tokens do not exist."""
    assert data.y is not None
    assert data.v is not None
    X = data.X[k].tolist()
    if data.mask is not None:
        X = [[x for x, seen in zip(*row, strict=True) if seen]
             for row in zip(X, data.mask[k].tolist(), strict=True)]  # fmt: skip
    return {"X": X, "z": data.z[k].tolist(), "y": data.y[k].tolist(), "v": data.v[k].tolist()}


def start_of(settings: dict[str, Any], W: Tensor, Q: Tensor) -> Any:
    return (W, Q) if settings.get("parameter") == "KQ" else W


def train_tasks(
    data: am.AttentionData, settings: dict[str, Any], start: Any, records: list[int]
) -> list[dict[str, Any]]:
    def given(k: int) -> Any:
        if isinstance(start, tuple):
            return {"K": start[0][k].tolist(), "Q": start[1][k].tolist()}
        return start[k].tolist()

    return [
        {"ask": "train", "data": plain(data, k), "records": records,
         "settings": {**settings, "start": given(k)}}
        for k in range(len(data.X))
    ]  # fmt: skip


def recorded(answers: list[Any], name: str) -> Tensor:
    """Read ``(R, B, …)`` from the answers."""
    rows = [[[float(x) for x in r[name]] if isinstance(r[name], list) else float(r[name])
             for r in own] for own in answers]  # fmt: skip
    return torch.tensor(rows, dtype=torch.float64).transpose(0, 1)


def apart(W: Tensor, other: Tensor) -> Tensor:
    """The largest relative distance over the records, ``(B,)``."""
    W, other = W.reshape(*W.shape[:2], -1), other.reshape(*other.shape[:2], -1)
    return ((W - other).norm(dim=-1) / other.norm(dim=-1)).amax(0)


def nudged(x: Tensor, seed: int) -> Tensor:
    return x * (1.0 + 2.0**-51 * drawn(*x.shape, seed=seed))


def unrest(data: am.AttentionData, settings: dict[str, Any], start: Any, W: Tensor) -> Tensor:
    """How far a change of the last digits moves a run: long steps make it chaotic."""
    other = am.AttentionData(nudged(data.X, 1), nudged(data.z, 2), data.y, data.v)
    near = tuple(nudged(x, 3) for x in start) if isinstance(start, tuple) else nudged(start, 3)
    return apart(am.train(other, init=near, **settings).W, W)


def test_training_is_that_of_the_library(ask: Ask) -> None:
    shapes = ((4, 6, 2), (3, 5, 3))
    tasks, runs = [], []
    for turn, (n, T, d) in enumerate(shapes):
        data = instances(6, n, T, d, seed=10 * turn)
        W, Q = drawn(6, d, d, seed=3 + turn), drawn(6, d, d, seed=7 + turn)
        for method in METHODS:
            for normalize in (True, False):
                start = start_of(method, W, Q)
                own = {**method, "normalize": normalize, "lr": 0.05}
                planned = {**own, "steps": 200, "record": 50}
                run = am.train(data, init=start, **planned)
                runs.append((own, run, unrest(data, planned, start, run.W)))
                tasks += train_tasks(data, own, start, run.steps.tolist())
    answers = ask(tasks)
    calm = 0
    for k, (own, run, moved) in enumerate(runs):
        part = answers[6 * k : 6 * k + 6]
        clear = moved < 1e-12
        calm += int(clear.sum())
        assert bool((apart(recorded(part, "W"), run.W) < 1e-9 + 1e4 * moved).all()), own
        for name, ours in (("loss", run.loss), ("probability", run.probability)):
            assert bool(((recorded(part, name) - ours).abs()[:, clear] < 1e-9).all()), (own, name)
        gradient = (recorded(part, "logGradient") - run.log_gradient).abs()[:, clear]
        assert bool((gradient < 1e-6 * (1.0 + run.log_gradient.abs()[:, clear])).all()), own
        selection = recorded(part, "selection")[:, clear].long()
        assert bool((selection == run.selection[:, clear]).all()), own
    assert calm > 0.8 * 6 * len(runs)


def test_saturated_runs_keep_their_direction(ask: Ask) -> None:
    settings: list[dict[str, Any]] = [{"method": "gd"}, {"method": "mirror", "p": 3.0},
                                      {"method": "gd", "parameter": "KQ"}]  # fmt: skip
    data = am.random_data(4, 4, 6, trials=6, name="explorer")
    W, Q = 0.5 * drawn(6, 6, 6, seed=1), 0.5 * drawn(6, 6, 6, seed=2)
    tasks, runs = [], []
    for own in settings:
        start = start_of(own, W, Q)
        runs.append(am.train(data, init=start, lr=0.1, steps=10_000, record=10_000, **own))
        tasks += train_tasks(data, own, start, [0, 10_000])
    answers = ask(tasks)
    for k, run in enumerate(runs):
        part = answers[6 * k : 6 * k + 6]
        W_end = recorded(part, "W")[-1].reshape(6, 6, 6)
        assert bool((run.probability[-1] > 1.0 - 1e-6).all())
        # Long steps around the limit differ; its direction does not.
        assert bool((am.correlation(W_end, run.W[-1]) > 1.0 - 1e-6).all()), settings[k]
        gradient = (recorded(part, "logGradient") - run.log_gradient)[-1].abs()
        assert bool((gradient < 1e-2 * run.log_gradient[-1].abs()).all())


def test_loss_above_that_of_the_best_tokens_does_not_underflow(ask: Ask) -> None:
    # One sequence, two tokens with logits (m, 0) and scores (1, 0): L − L⋆ ≈ |ℓ'(1)| e^{−m}.
    data = {"X": [[[1.0, 0.0], [0.0, 0.0]]], "z": [[1.0, 0.0]], "y": [1.0], "v": [1.0, 0.0]}
    start = [[5000.0, 0.0], [0.0, 0.0]]
    (answer,) = ask([{"ask": "train", "data": data, "settings": {"start": start}, "records": [0]}])
    slope = -torch.nn.functional.softplus(torch.tensor(1.0, dtype=torch.float64))
    assert float(answer[0]["logExcess"]) == pytest.approx(-5000.0 + float(slope), rel=1e-12)


def test_attention_of_sequences_of_different_lengths(ask: Ask) -> None:
    data = instances(8, 4, 6, 2, seed=50)
    mask = torch.arange(6) < torch.tensor([6, 3, 1, 4]).unsqueeze(-1)
    data = am.AttentionData(data.X, data.z, data.y, data.v, mask.expand(8, 4, 6))
    W = drawn(8, 2, 2, seed=51)
    tasks = [{"ask": "attention", "data": plain(data, k), "W": W[k].tolist()} for k in range(8)]
    tasks += train_tasks(data, {"method": "gd"}, W, [100])
    answers = ask(tasks)
    for k, ours in enumerate(am.probabilities(data, W)):
        for own, row in zip(answers[k], ours, strict=True):
            assert own == pytest.approx(row[row > 0].tolist(), abs=1e-12)
    run = am.train(data, init=W, steps=100, record=100)
    assert bool((apart(recorded(answers[8:], "W"), run.W[1:]) < 1e-8).all())


def test_equal_scores_stay_equal_and_zero_queries_rest(ask: Ask) -> None:
    # The scores of tokens 0 and 1 agree, but not if they are summed without care.
    X = [[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.0, 0.1, 0.1]], [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]]
    data = am.AttentionData(
        torch.tensor([X[0], [*X[1], [0.0, 0.0, 0.0]]], dtype=torch.float64),
        torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.0, 0.0]], dtype=torch.float64),
        torch.ones(2, dtype=torch.float64),
        torch.ones(3, dtype=torch.float64),
        torch.tensor([[True] * 3, [True, True, False]]),
    )
    own = {"X": X, "z": data.z.tolist(), "y": [1.0, 1.0], "v": [1.0] * 3}
    (answer,) = ask([{"ask": "train", "data": own, "settings": {}, "records": [0, 1000]}])
    run = am.train(data, steps=1000, record=1000)
    assert answer[-1]["W"] == pytest.approx(run.W[-1].flatten().tolist(), rel=1e-9)
    assert answer[-1]["loss"] == pytest.approx(float(run.loss[-1]), rel=1e-12)


def test_guarantees_have_the_numbers_of_the_library(ask: Ask) -> None:
    tasks, found = [], []
    for turn, (n, T, d) in enumerate(((4, 6, 2), (3, 5, 3), (2, 3, 2))):
        data = instances(10, n, T, d, seed=100 + 10 * turn)
        run = am.train(data, init=drawn(10, d, d, seed=turn), steps=1600, record=400)
        for W in run.W[1:]:
            found.append(am.theory.guarantee(data, W, step=0.1))
            tasks += [{"ask": "guarantee", "data": plain(data, k), "W": W[k].tolist(),
                       "settings": {"lr": 0.1}} for k in range(10)]  # fmt: skip
    answers = ask(tasks)
    for k, ours in enumerate(found):
        for j, own in enumerate(answers[10 * k : 10 * k + 10]):
            proved = own["level"] == "guaranteed from this start"
            assert proved == bool(ours.proved[j])
            if not proved:
                continue
            assert own["theorem"] == ("A" if bool(ours.by_level[j]) else "B")
            assert own["selection"] == ours.selection[j].tolist()
            assert own["longest"] >= 0.1
            # Where both theorems hold, the library takes the better number of each.
            for name, number in (("longest", ours.longest[j]), ("share", ours.share[j])):
                assert own[name] <= (1.0 + 1e-6) * float(number)
                if not bool(ours.by_funnel[j]) or not bool(ours.by_level[j]):
                    assert own[name] == pytest.approx(float(number), rel=1e-6)


def compared(
    ask: Ask, data: am.AttentionData, settings: dict[str, Any], init: Tensor, steps: int
) -> list[str]:
    """Predict by both; check the selections, and return the verdicts that JavaScript weakens."""
    B = len(data.X)
    ours = am.predict(data, init=init, steps=steps, **settings)
    assert ours.ending is not None
    tasks = [{"ask": "predict", "data": plain(data, k), "budget": steps,
              "settings": {**settings, "start": init[k].tolist()}}
             for k in range(B)]  # fmt: skip
    weaker = []
    for k, own in enumerate(ask(tasks)):
        verdict, known = own["verdict"], str(ours.verdict[k])
        assert own["selection"] == ours.selection[k].tolist(), (settings, k)
        assert VERDICTS.index(verdict) <= VERDICTS.index(known), (settings, k)
        if verdict != known:
            weaker.append(known)
        elif verdict == "guaranteed from this start":
            assert own["since"] == int(ours.ending.since[k])
    return weaker


@pytest.mark.parametrize("settings", [{"normalize": True, "lr": 0.1},
                                      {"normalize": False, "lr": 1.0, "loss": "exponential"}],
                         ids=["normalised", "plain"])  # fmt: skip
def test_verdicts_are_those_of_the_library(ask: Ask, settings: dict[str, Any]) -> None:
    weaker = []
    for turn, (n, T, d) in enumerate(((4, 6, 2), (2, 3, 2), (3, 5, 3), (1, 4, 2))):
        start = drawn(8, d, d, seed=turn)
        start[:4] = 0.0
        weaker += compared(ask, instances(8, n, T, d, seed=200 + 10 * turn), settings, start, 2000)
    assert len(weaker) <= 1


def test_mirror_descent_selects_the_same_without_a_proof(ask: Ask) -> None:
    settings = {"p": 1.5, "method": "mirror"}
    weaker = compared(ask, instances(8, 3, 4, 2, seed=300), settings, drawn(8, 2, 2, seed=1), 2000)
    assert set(weaker) <= {"guaranteed from this start"}


def test_copies_are_one_token(ask: Ask) -> None:
    data = instances(8, 2, 4, 2, seed=400)
    data.X[:, 0, 2], data.X[:, 1, 3] = data.X[:, 0, 0], data.X[:, 1, 1]
    compared(ask, data, {"lr": 0.1}, torch.zeros(8, 2, 2, dtype=torch.float64), 2000)


def test_a_map_shows_where_each_start_ends(ask: Ask) -> None:
    data = plain(instances(1, 2, 4, 2, seed=511), 0)
    E1, E2 = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]
    a, b = [-2.0, -0.5, 1.0, 2.5], [-1.5, 0.5, 2.0]
    starts = [[[x, y], [-y, x]] for y in b for x in a]
    task = {"ask": "map", "data": data, "settings": {}, "E1": E1, "E2": E2, "a": a, "b": b,
            "budget": 4000, "piece": 5}  # fmt: skip
    runs = [{"ask": "predict", "data": data, "settings": {"start": start}, "budget": 4000}
            for start in starts]  # fmt: skip
    found, *ends = ask([task, *runs])
    assert len(found["selections"]) > 1
    for place, level, end in zip(found["end"], found["level"], ends, strict=True):
        assert found["selections"][place] == end["selection"]
        assert (level == 2) == (end["since"] >= 0)
