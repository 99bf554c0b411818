"""Paper D: the first step (Lemma 2), and what the flow of ⟨cls⟩ selects (Theorem 5)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.embeddings.instances import important_tokens, level_tokens, random_embeddings
from attnmargin.embeddings.model import EmbeddingModel, FirstStep, first_step, other_selections
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    least_of,
    mean_of,
    number_of,
    share_of,
)
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
from attnmargin.training import gradient_flow

# --- Lemma 2 ---------------------------------------------------------------------------------

_WIDTHS = (16, 64, 256, 1024, 4096)
_STEP = 1.0


def _run_lemma2(task: Task) -> Arrays:
    d = task.settings["d"]
    errors, moves = [], []
    for trial in range(task.trials):
        data, _ = level_tokens(64, T=32, seed=seed_of("D:lemma2", trial, base=task.seed))
        step = first_step(random_embeddings(data, d, seed=trial + task.seed), _STEP)
        errors.append(max(float(step.error_E.max()), float(step.error_p)))
        moves.append(0.5 * _STEP * float(step.model.alpha.abs().max()))
        task.progress(trial + 1, task.trials)
    return {"error": np.array(errors), "move": np.array(moves), "bound": np.array(step.bound)}


def _errors(results: Results) -> list[NDArray[Any]]:
    return [results[f"d{d}"]["error"] for d in _WIDTHS]


def _slope(results: Results) -> float:
    """Fit a power law to the largest error as a function of d; return the exponent."""
    means = np.log([error.mean() for error in _errors(results)])
    return float(np.polyfit(np.log(_WIDTHS), means, 1)[0])


def _claims_lemma2(results: Results) -> list[Claim]:
    last = results[f"d{_WIDTHS[-1]}"]
    words = f"d = {_WIDTHS[-1]}: largest error of the first step, over the largest predicted move"
    return [
        at_most(f"{words} (η/2)|α|, mean", mean_of(last["error"] / last["move"]), 0.5),
        at_most("observed exponent of d in the largest error (bound: −1/4)", _slope(results), -0.2),
    ]


def _measured_lemma2(results: Results) -> list[Measurement]:
    """Compare the error with the lemma's bound, which no step of these widths could exceed.

    The bound 11 η d^(−1/4) is larger than every move (η/2)|α| ≤ η/2 up to d = 22⁴.
    """
    worst = max(float((own["error"] / own["bound"]).max()) for own in results.values())
    what = "largest error of the first step, over the bound 11 η d^(−1/4)"
    return [Measurement(what, worst)]


def _pictures_lemma2(results: Results) -> list[Picture]:
    x = np.array(_WIDTHS, float)
    series = [
        mean_curve("largest error", x, _errors(results), log=True, marker="o"),
        Series(kind="line", name="bound of Lemma 2", x=x, y=11.0 * _STEP * x**-0.25, style=1),
    ]
    panel = Panel(title="first step", axes=("embedding width (d)", "error"), series=series,
                  logarithmic=(True, True))  # fmt: skip
    caption = (
        "Largest of ‖E¹ − E⁰ − (η/2) α v‖ over all tokens and ‖p¹ − p⁰‖, mean of trials with 95 % "
        f"band; data of the K-level model, η = {_STEP:g}. It falls like d^{_slope(results):.2f}."
    )
    return [Picture(name="lemma2", caption=caption, panels=[panel])]


# --- Theorem 5 -------------------------------------------------------------------------------

_N, _T, _D, _RATE, _LENGTH, _RECORDS = 6, 5, 256, 30.0, 400.0, 8
# A token counts as selected at the end of the flow if its attention exceeds this.
_SELECTED = 1e-3


def _starts(task: Task, **sizes: int) -> list[FirstStep]:
    """Draw data that obey Assumption 4, and take one step."""
    steps = []
    for trial in range(task.trials):
        seed = seed_of("D:theorem5", trial, base=task.seed)
        data = important_tokens(sizes["n"], sizes["T"], seed=seed)
        steps.append(first_step(random_embeddings(data, _D, seed=seed), _RATE))
    return steps


def _follow(steps: list[FirstStep]) -> Any:
    """Follow the flow of p for all data sets at once."""
    own = [step.model.data() for step in steps]
    parts = [torch.stack([getattr(data, name) for data in own]) for name in ("X", "z", "y", "v")]
    p = torch.stack([step.model.p for step in steps])
    return gradient_flow(AttentionData(*parts), _LENGTH, "p", init=p, record=_RECORDS)


def _run_theorem5(task: Task) -> Arrays:
    steps = _starts(task, n=task.settings["n"], T=task.settings["T"])
    run = _follow(steps)
    path = run.W[..., 0]  # (R, B, d)
    rows: list[dict[str, Any]] = []
    for k, step in enumerate(steps):
        model = step.model.at(step.model.E, path[-1, k])
        rows.append(_ending(model, path[:, k]))
        if task.settings["other"]:
            rows[-1]["ratio"] = _next_best(model)
        task.progress(k + 1, len(steps))
    arrays = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return arrays | {"length": run.steps.numpy(), "norm": path.norm(dim=-1).numpy()}


def _ending(model: EmbeddingModel, path: torch.Tensor) -> dict[str, Any]:
    """Find what is selected at the end, and compare the path with p* of that selection."""
    chosen = model.attention > _SELECTED
    important = torch.from_numpy(model.statistics().complete)[model.ids]
    solution = model.max_margin(chosen)
    cosine = torch.cosine_similarity(path, solution.vector, -1)
    return {
        "important": bool(chosen[important].all()),
        "extra": int((chosen & ~important).sum()),
        "everything": bool(chosen.all()),
        "correlation": cosine.numpy(),
    }


def _next_best(model: EmbeddingModel) -> float:
    """Divide ``‖p̂‖`` of the important tokens by the least ``‖p̂′‖`` of others (Lemma 19)."""
    important = torch.from_numpy(model.statistics().complete)[model.ids]
    own = float(model.max_margin(important).value)
    return own / other_selections(model, important)


def _claims_theorem5(results: Results) -> list[Claim]:
    main, small = results["main"], results["small"]
    last = main["correlation"][:, -1]
    return [
        at_least("share of data sets whose important tokens are all selected",
                 share_of(main["important"]), 1.0),
        at_least("correlation with p* of its own selection, worst data set", least_of(last), 0.999),
        at_least("‖p‖ at the end over ‖p‖ at the start, least",
                 least_of(main["norm"][-1] / main["norm"][0]), 100.0),
        at_most("data sets that select every token (Lemma 6: none)",
                number_of(main["everything"]), 0.0),
        at_least("small data: share that select only important tokens",
                 share_of(small["extra"] == 0), 1.0),
    ]  # fmt: skip


def _pictures_theorem5(results: Results) -> list[Picture]:
    main, small = results["main"], results["small"]
    lengths = main["length"][1:]
    panels = [
        Panel(title="direction", axes=("arc length of the flow", "distance from p* (1 − corr)"),
              series=[mean_curve("mean", lengths, list(1.0 - main["correlation"][:, 1:].T),
                                 log=True)], logarithmic=(True, True)),
        Panel(title="length", axes=("arc length of the flow", "length of ⟨cls⟩ (‖p‖)"),
              series=[mean_curve("mean", main["length"], list(main["norm"]))]),
        Panel(title="Lemma 19, small data", axes=("data set", "‖p̂‖ / least ‖p̂′‖"),
              series=[Series(kind="points", name="margin ratio", x=np.arange(len(small["ratio"])),
                             y=np.sort(small["ratio"])),
                      Series(kind="level", name="condition: below 1", x=np.array(0.0),
                             y=np.array(1.0))]),
    ]  # fmt: skip
    caption = (
        f"{len(main['important'])} data sets that obey Assumption 4 (n = {_N}, T = {_T}, d = {_D}, "
        f"first step η₀ = {_RATE:g}). All important tokens are selected in "
        f"{int(main['important'].sum())}; {int((main['extra'] > 0).sum())} select an irrelevant "
        "token as well. Right: all other selections of small data (n = 4, T = 3), compared by the "
        "norm of their max-margin solution: Lemma 19's condition holds in "
        f"{int((small['ratio'] < 1.0).sum())} of {len(small['ratio'])}."
    )
    return [Picture(name="theorem5", caption=caption, panels=panels)]


EXPERIMENTS = (
    Experiment("D:lemma2", "One gradient step aligns embeddings with v by signed frequency", 20,
               tuple(Point(f"d{d}", {"d": d}) for d in _WIDTHS),
               _run_lemma2, _claims_lemma2, _pictures_lemma2, measurements=_measured_lemma2),
    Experiment("D:theorem5", "The flow of ⟨cls⟩ selects important tokens, by the margin", 100,
               (Point("main", {"n": _N, "T": _T, "other": False}),
                Point("small", {"n": 4, "T": 3, "other": True})),
               _run_theorem5, _claims_theorem5, _pictures_theorem5),
)  # fmt: skip
