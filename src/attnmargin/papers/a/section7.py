"""Paper A, Section 7: sequence, causal and masked outputs, self-attention, (K, Q), many heads."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.heads import HeadLike, ScoreHead
from attnmargin.attention.score import optimal_tokens
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import normal, random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.a.directions import uniform_factors
from attnmargin.papers.engine.claims import Claim, at_least, mean_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training import regularization_path, train
from attnmargin.training.measures import correlation

_N, _K, _D = 3, 4, 16
_PATHS = 8  # trials whose regularisation path is computed: a path takes as long as ten descents
# Plain descent on (K, Q) aligns slowly; a vanishing penalty leads it along the path of Theorem 2.
_PENALTY = 1e-60
_FORMS: dict[str, dict[str, Any]] = {
    "sequence": {},
    "causal": {},
    "masked": {},
    "self": {},  # Z = X
    "heads": {},  # a head per output
    "KQ": {"parameter": "KQ", "m": _D},
    "narrow": {"parameter": "KQ", "m": _N * _K},  # as many columns as outputs, fewer than d
}
_NAMES = {
    "self": "self-attention",
    "heads": "a head per output",
    "KQ": f"(K, Q), m = {_D}",
    "narrow": f"(K, Q), m = {_N * _K}",
}


class _Outputs(NamedTuple):
    data: AttentionData
    head: HeadLike
    best: Tensor  # int (trials, n, K)

    def first(self, count: int) -> "_Outputs":
        """Return the first trials."""
        head = ScoreHead(self.head.scores[:count]) if isinstance(self.head, ScoreHead) else "linear"
        return _Outputs(self.data[:count], head, self.best[:count])


def _mask(kind: str, generator: torch.Generator, trials: int) -> Tensor | None:
    """Mark the tokens that each query sees, ``(trials, n, K, T)``."""
    if kind == "causal":
        lower = torch.ones(_K, _K, dtype=torch.bool).tril()
        return lower.expand(trials, _N, _K, _K)
    if kind != "masked":
        return None
    mask = torch.rand(trials, _N, _K, _K, generator=generator) < 0.7
    mask[..., 0] = True
    return mask


def _outputs(kind: str, task: Task) -> _Outputs:
    """Draw sequences of K tokens with K outputs each, their labels and heads."""
    generator = torch.Generator().manual_seed(seed_of("A:sec7", kind, base=task.seed))
    base = random_data(_N, _K, _D, trials=task.trials, name=f"A:sec7 {kind}", seed=task.seed)
    shape = (task.trials, _N, _K)
    z = base.X if kind == "self" else normal((*shape, _D), generator)
    y = 2.0 * torch.randint(0, 2, shape, generator=generator).to(torch.float64) - 1.0
    data = AttentionData(base.X, z, y, base.v, _mask(kind, generator, task.trials))
    if kind != "heads":
        return _Outputs(data, "linear", optimal_tokens(data))
    v = normal((task.trials, _K, _D), generator)
    gamma = y.unsqueeze(-1) * torch.einsum("bntd,bkd->bnkt", base.X, v)
    return _Outputs(data, ScoreHead(gamma), gamma.argmax(-1))


def _run_sec7(task: Task) -> Arrays:
    kind, m = task.settings["kind"], task.settings.get("m")
    data, head, best = drawn = _outputs(kind, task)
    parameter = "W" if m is None else "KQ"
    init = None if m is None else uniform_factors(data, m, f"A:sec7 {kind}", task.seed)
    steps = 20000 if m is None else 5000
    run = train(data, parameter, head=head, steps=steps, record=steps // 100, init=init,
                penalty=0.0 if m is None else _PENALTY, progress=task.progress)  # fmt: skip
    norm = implied_norm(parameter)
    solution = solve(token_problem(data.X, data.z, run.selection[-1], data.mask), norm)
    few = drawn.first(_PATHS)
    goal = solve(token_problem(few.data.X, few.data.z, few.best, few.data.mask), norm)
    path = regularization_path(few.data, [100.0, 1000.0], parameter, head=few.head, width=m)
    solved = solution.optimal.numpy()
    return {
        "steps": run.steps.numpy(),
        "descent": correlation(run.W, solution.W.nan_to_num(nan=0.0)).numpy()[:, solved],
        "radius": path.steps.numpy(),
        "path": correlation(path.W, goal.W).numpy(),
        "unsolved": np.array(int((~solved).sum())),
        "best": (run.selection[-1] == best).flatten(1).all(-1).numpy(),
    }


def _claims_sec7(results: Results) -> list[Claim]:
    claims = []
    for kind in _FORMS:
        own, name = results[kind], _NAMES.get(kind, kind)
        claims.append(at_least(f"{name}: descent meets the SVM of what it selects, mean",
                               mean_of(own["descent"][-1]), 0.99))  # fmt: skip
        claims.append(at_least(f"{name}: the regularisation path meets the SVM, mean",
                               mean_of(own["path"][-1]), 0.99))  # fmt: skip
    return claims


def _chosen(results: Results) -> list[Measurement]:
    """Count the trials that select all best tokens, and those without a solution."""
    found = [
        Measurement(f"{_NAMES.get(kind, kind)}: trials that select all best tokens",
                    float(results[kind]["best"].sum())) for kind in _FORMS
    ]  # fmt: skip
    unsolved = sum(int(own["unsolved"]) for own in results.values())
    return [*found, Measurement("trials whose selection has no SVM solution", float(unsolved))]


def _pictures_sec7(results: Results) -> list[Picture]:
    descent: list[Series] = []
    path: list[Series] = []
    for i, kind in enumerate(_FORMS):
        own, look = results[kind], {"colour": i, "style": i % 4}
        name, off = _NAMES.get(kind, kind), 1.0 - own["descent"][1:]
        descent.append(mean_curve(name, own["steps"][1:], off, log=True, **look))
        path.append(mean_curve(name, own["radius"], 1.0 - own["path"], log=True, **look))
    caption = (
        f"n = {_N} sequences of {_K} tokens with {_K} outputs each, d = {_D}. All tokens visible "
        "(sequence), the first k (causal), or a random mask; self-attention: Z = X; (K, Q) with "
        "penalty 1e-60, against the nuclear solution. Means with 95 % bands. Section 7 extends the "
        "theory to these forms; there is no figure in the paper."
    )
    panels = [
        Panel(title="descent", axes=("training step", "distance (1 − correlation)"), series=descent,
              logarithmic=(True, True)),
        Panel(title="regularisation path",
              axes=("size of the weights (norm R)", "distance (1 − correlation)"), series=path,
              logarithmic=(True, True)),
    ]  # fmt: skip
    return [Picture(name="sec7", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:sec7", "Sequence, causal and masked outputs, self-attention, (K, Q)", 20,
               tuple(Point(key, {"kind": key, "paths": _PATHS, **more})
                     for key, more in _FORMS.items()),
               _run_sec7, _claims_sec7, _pictures_sec7, measurements=_chosen),
)  # fmt: skip
