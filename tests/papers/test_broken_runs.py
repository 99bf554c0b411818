"""Claims fail where the computation itself is broken: solutions of other data, tokens and norms."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from attnmargin.data.attention_data import AttentionData
from attnmargin.embeddings.model import first_step
from attnmargin.margin.builders import token_problem
from attnmargin.papers.a import section7
from attnmargin.papers.b import examples
from attnmargin.papers.b import paths as b_paths
from attnmargin.papers.c import descent, lemmas
from attnmargin.papers.c.data import Instances
from attnmargin.papers.d import theory
from attnmargin.papers.engine.experiment import Task
from attnmargin.papers.p import mirror, rates
from attnmargin.papers.registry import find
from attnmargin.solvers.entry import solve
from attnmargin.training.regularization import paths

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]
WIDTHS = (16, 64, 256, 1024)  # of Lemma 2 of paper D


@pytest.fixture(autouse=True)
def _short(monkeypatch: Patch) -> None:
    """Leave out what takes long and no claim needs."""
    monkeypatch.setattr(theory, "_WIDTHS", WIDTHS)
    monkeypatch.setattr(descent, "_PLAIN", 1000)


def _task(settings: dict[str, Any], trials: int = 3) -> Task:
    return Task(settings, trials, 0, lambda done, total: None)


def _holds(name: str) -> list[tuple[str, bool]]:
    """Run the points of an experiment, and judge the claims."""
    own = find(name)
    results = {
        point.key: own.run(_task(point.settings))
        for point in own.points
        if point.settings.get("d", 0) <= WIDTHS[-1]
    }
    return [(claim.claim, claim.holds) for claim in own.claims(results)]


_unbroken = cache(_holds)


def _another_data_set(name: str) -> Break:
    """Give every data set the solution, or the correction, of its neighbour."""
    true = getattr(Instances, name)
    return lambda patch: patch.setattr(Instances, name, lambda self: true(self)[[1, 2, 0]])


def _random_weights(module: Any) -> Break:
    """Let training end in random weights, as long as the trained ones."""
    true, generator = module.train, torch.Generator().manual_seed(0)

    def train(*args: Any, **options: Any) -> Any:
        run = true(*args, **options)
        drawn = torch.randn(run.W[-1].shape, generator=generator, dtype=torch.float64)
        size = torch.linalg.matrix_norm(run.W[-1]) / torch.linalg.matrix_norm(drawn)
        run.W[-1] = size[:, None, None] * drawn
        return run

    return lambda patch: patch.setattr(module, "train", train)


def _concave(patch: Patch) -> None:
    """Take the negative of the loss."""
    true = lemmas.plain_loss
    patch.setattr(lemmas, "plain_loss", lambda *args: -true(*args))


def _powers_exchanged(patch: Patch) -> None:
    """Solve with p = 3 where p = 2 is asked for, and the other way round."""
    powers = {2.0: 3.0, 3.0: 2.0}
    patch.setattr(examples, "solve", lambda problem, p: solve(problem, powers[p]))


def _other_tokens(module: Any) -> Break:
    """Solve for the token after each selected one."""

    def problem(X: Tensor, z: Tensor, selection: Any) -> Any:
        return token_problem(X, z, (torch.as_tensor(selection) + 1) % X.shape[-2])

    return lambda patch: patch.setattr(module, "token_problem", problem)


def _other_step(factor: float) -> Break:
    """Predict another first step of the embeddings."""

    def step(model: Any, rate: float) -> Any:
        found = first_step(model, rate)
        moved = 0.5 * rate * factor * model.alpha[:, None] * model.v
        return replace(found, error_E=(found.model.E - model.E - moved).norm(dim=-1))

    return lambda patch: patch.setattr(theory, "first_step", step)


BROKEN: list[tuple[str, Break, str]] = [
    ("B:example1", _powers_exchanged, "printed|ℓ3 norm"),
    ("B:fig2", _other_tokens(examples), "least margin"),
    ("B:fig5", _other_tokens(b_paths), "cosine"),
    ("C:fig3", _another_data_set("solution"), "correlation|same"),
    ("C:fig4", _another_data_set("corrections"), "‖Π_cyc W"),
    ("C:convexity", _another_data_set("corrections"), "gradient"),
    ("C:convexity", _concave, "Hessians|on the cyclic"),
    ("C:orthogonal", _another_data_set("corrections"), "⟨W_cyc, W_mm⟩|W_cyc outside"),
    ("C:orthogonal", _another_data_set("solution"), "W_mm inside"),
    ("C:automaton", _random_weights(lemmas), "training sequences of|new prompts"),
    ("C:automaton", _random_weights(descent), "both|margin above"),
    ("D:lemma2", _other_step(0.0), "predicted|exponent"),
    ("D:lemma2", _other_step(2.0), "predicted|exponent"),
]


@pytest.mark.parametrize(("name", "change", "breaks"), BROKEN)
def test_a_broken_computation_breaks_its_claims(
    name: str, change: Break, breaks: str, monkeypatch: Patch
) -> None:
    before = _unbroken(name)
    change(monkeypatch)
    after = _holds(name)
    places = [k for k, (words, _) in enumerate(before) if re.search(breaks, words)]
    assert places
    assert all(before[k][1] for k in places)
    assert [after[k][0] for k in places if after[k][1]] == []


def _premature(module: Any, steps: int) -> Break:
    """Take every run for proved after a few steps."""
    true = module.predict

    def predict(data: AttentionData, **options: Any) -> SimpleNamespace:
        found = true(data, **{**options, "steps": steps})
        own, sure = found.ending, torch.ones(data.batch_shape, dtype=torch.bool)
        ending = SimpleNamespace(proved=sure, since=0 * own.since, flow=sure, onward=own.onward,
                                 W=own.W, proof=own.proof)  # fmt: skip
        longest = torch.full(data.batch_shape, 0.1, dtype=torch.float64)
        return SimpleNamespace(data=data, course=found.course, selection=own.selection,
                               ending=ending, longest=longest)  # fmt: skip

    return lambda patch: patch.setattr(module, "predict", predict)


def test_runs_leave_their_tokens_if_proofs_come_too_early(monkeypatch: Patch) -> None:
    monkeypatch.setattr(mirror, "_FURTHER", 1000)
    monkeypatch.setattr(rates, "_STEPS", 1000)
    for module in (mirror, rates):
        _premature(module, 8)(monkeypatch)
    left = mirror._run(_task({"shape": (6, 8, 10), "p": 1.75}, 10))["left"]
    kept = rates._run(_task({"shape": (5, 5, 5), "rate": 10.0}, 10))["kept"]
    assert left.any()
    assert not kept.all()


def test_joint_paths_from_one_start_miss_the_largest_margin(monkeypatch: Patch) -> None:
    """Without descents from other selections, random data contradict Theorem 5 of paper B."""
    monkeypatch.setattr(paths, "by_selections", lambda landscape, p, radii, points: points)
    own = b_paths._run_random(_task({"p": 2.0}, 6))
    assert own["largest"].mean() < 0.95
    assert own["above"].max() > 1e-6


def test_section_7_notices_a_mask_that_is_forgotten_and_other_trials(monkeypatch: Patch) -> None:
    """Weights are trained once; then their solutions are broken."""
    task = _task({"kind": "causal"}, 2)
    for name in ("train", "regularization_path"):
        monkeypatch.setattr(section7, name, _remembered(getattr(section7, name)))
    own = section7._run_sec7(task)
    assert min(own["descent"][-1].mean(), own["path"][-1].mean()) > 0.99
    changes: list[Any] = [
        lambda X, z, chosen, mask: token_problem(X, z, chosen),
        lambda X, z, chosen, mask: token_problem(X.flip(0), z.flip(0), chosen, mask),
    ]
    for change in changes:
        monkeypatch.setattr(section7, "token_problem", change)
        own = section7._run_sec7(task)
        assert max(own["descent"][-1].mean(), own["path"][-1].mean()) < 0.99


def _remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function once, and return the same again."""
    found: list[Any] = []

    def call(*args: Any, **options: Any) -> Any:
        if not found:
            found.append(function(*args, **options))
        return found[0]

    return call
