"""F:global, F:local, F:joint: what p converges to, for fixed heads and together with the head."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import optimal_tokens, scores
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import label_problem
from attnmargin.margin.prompt import prompt_data, prompt_problem
from attnmargin.papers.engine.claims import Claim, at_least, mean_of, more_than, share_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import GREY, Panel, Picture, Series
from attnmargin.selections.local_optimality import locally_optimal
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation
from attnmargin.training.regularization.paths import regularization_path

_SHAPE, _STEPS, _RECORD = (6, 5, 20), 4000, 200
_SMALL, _ONE = (4, 5, 4), (1, 5, 20)
_NAMES = {"one": "one sequence", "six": "six sequences"}
_RADII = (3.0, 10.0, 30.0, 100.0)
_POWER = 1.5  # the head has the norm ‖p‖^1.5
_TOGETHER = 50_000
_FAR = 2.0  # length of the tokens that need not support the head


def _drawn(
    task: Task, shape: tuple[int, int, int], equal: bool = False, far: float = 1.0
) -> AttentionData:
    """Draw tokens, labels, a head and W_key; with ``equal``, the other tokens score alike."""
    data = random_data(*shape, trials=task.trials, name="F", seed=task.seed)
    generator = torch.Generator().manual_seed(seed_of("F", "key", base=task.seed))
    key = torch.randn(shape[-1], shape[-1], generator=generator, dtype=torch.float64)
    key = torch.eye(shape[-1], dtype=torch.float64) + 0.3 * key / shape[-1] ** 0.5
    assert data.y is not None
    assert data.v is not None
    X = _levelled(data) if equal else data.X
    return prompt_data(X * _sizes(data.n, far), key, data.y, data.v)


def _sizes(n: int, far: float) -> Tensor:
    """Lengthen the tokens of every second sequence, which then need not support the head."""
    return torch.where(torch.arange(n) % 2 == 1, far, 1.0).double()[:, None, None]


def _levelled(data: AttentionData) -> Tensor:
    """Move all tokens but the best along v, so that they score −0.5."""
    assert data.v is not None
    assert data.y is not None
    own = torch.nn.functional.one_hot(optimal_tokens(data), data.T).bool()
    wanted = torch.where(own, scores(data), -0.5 * torch.ones_like(scores(data)))
    shift = (wanted - scores(data)) * data.y[..., None]
    v = data.v / data.v.square().sum(-1, keepdim=True)
    return data.X + shift[..., None] * v[:, None, None]


def _alone(task: Task) -> Arrays:
    """Train p with a fixed head; compare it with the SVM of what it selects."""
    data = _drawn(task, task.settings["shape"], task.settings["equal"])
    run = train(data, lr=0.1, steps=_STEPS, record=_RECORD, progress=task.progress)
    selection = run.selection[-1]
    solution = solve(prompt_problem(data.X, selection))
    p = run.W[1:, ..., :1]
    return {
        "steps": run.steps[1:].numpy(),
        "correlation": correlation(p, solution.W).numpy(),
        "best": (selection == optimal_tokens(data)).all(-1).numpy(),
        "local": locally_optimal(data, selection).numpy(),
        "feasible": solution.optimal.numpy(),
        "moved": run.W[-1, ..., 1:].abs().amax((-2, -1)).numpy(),
    }


def label_selection(data: AttentionData) -> tuple[Tensor, Tensor, Tensor]:
    """Find tokens that are best for the max-margin head of themselves, by turns.

    Returns:
        the selection ``(B, n)``, the head of length one ``(B, d)``, and which sequences support it.
    """
    assert data.y is not None
    selection = optimal_tokens(data)
    for _ in range(20):
        solution = solve(label_problem(data.X, data.y, selection))
        v = solution.W.reshape(len(selection), -1) * solution.margin[:, None]
        score = data.y[..., None] * (data.X @ v[:, None, :, None])[..., 0]
        if bool((score.argmax(-1) == selection).all()):
            break
        selection = score.argmax(-1)
    return selection, v, solution.support


def _joint(task: Task) -> Arrays:
    """Minimise over balls of p, the head along its max-margin direction and ever longer."""
    data = _drawn(task, _SHAPE, far=_FAR)
    selection, v, support = label_selection(data)
    whole = solve(prompt_problem(data.X, selection))
    relaxed = solve(prompt_problem(data.X, selection, support))
    own: dict[str, list[np.ndarray]] = {"whole": [], "relaxed": []}
    for k, radius in enumerate(_RADII):
        longer = AttentionData(data.X, data.z, data.y, v * radius**_POWER, data.mask)
        p = regularization_path(longer, [radius], search=False).W[-1][..., :1]
        own["whole"].append(correlation(p, whole.W).numpy())
        own["relaxed"].append(correlation(p, relaxed.W).numpy())
        task.progress(k + 1, len(_RADII) + 1)
    run = train(data, "vW", lr=0.01, steps=_TOGETHER, record=_TOGETHER)
    chosen = solve(prompt_problem(data.X, run.selection[-1]))
    return {
        **{name: np.stack(values) for name, values in own.items()},
        "some": (~support).any(-1).numpy(),
        "together": correlation(run.W[-1][..., :1], chosen.W).numpy(),
    }


def _global_claims(results: Results) -> list[Claim]:
    one = results["one"]
    return [
        at_least("one sequence, other tokens scoring alike: runs that select the best token",
                 share_of(one["best"]), 0.95),
        at_least("correlation of p with the SVM of the best token",
                 mean_of(one["correlation"][-1][one["best"]]), 0.99),
    ]  # fmt: skip


def _global_measurements(results: Results) -> list[Measurement]:
    own = results["six"]
    reached = own["correlation"][-1][own["feasible"]]
    return [
        Measurement("six sequences, other tokens scoring alike: runs that select the best tokens",
                    float(own["best"].mean())),
        Measurement("their correlation with the SVM of what they select", float(reached.mean())),
    ]  # fmt: skip


def _local_claims(results: Results) -> list[Claim]:
    arrays = results["local"]
    fine = arrays["feasible"]
    return [
        at_least("runs that end in a locally optimal selection", share_of(arrays["local"]), 0.95),
        at_least("correlation of p with the SVM of what it selects",
                 mean_of(arrays["correlation"][-1][fine]), 0.99),
    ]  # fmt: skip


def _joint_claims(results: Results) -> list[Claim]:
    arrays = results["joint"]
    some = arrays["some"]
    relaxed, whole = (arrays[name][-1] for name in ("relaxed", "whole"))
    return [
        at_least("correlation of p with the relaxed SVM, head of norm ‖p‖^1.5",
                 mean_of(relaxed), 0.97),
        more_than("the same, some sequence not needed: above the correlation with the whole SVM",
                  relaxed[some], whole[some]),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    arrays = results["joint"]
    some, together = arrays["some"], arrays["together"]
    return [
        Measurement("share of data in which some sequence does not support the head",
                    float(some.mean())),
        Measurement("normalised steps of v and p at one rate: correlation with the whole SVM, "
                    "every sequence needed", float(together[~some].mean())),
        Measurement("the same, some sequence not needed", float(together[some].mean())),
    ]  # fmt: skip


def _local_measurements(results: Results) -> list[Measurement]:
    own = results["local"]
    return [Measurement("runs that select the best tokens", float(own["best"].mean()))]


def _course_pictures(results: Results) -> list[Picture]:
    series = [
        mean_curve(_NAMES.get(key, ""), own["steps"], list(own["correlation"][:, own["feasible"]]),
                   colour=k)
        for k, (key, own) in enumerate(results.items())
    ]  # fmt: skip
    panel = Panel(title="", axes=("steps", "correlation of p with the SVM of its selection"),
                  series=series)  # fmt: skip
    caption = "Mean over trials with 95 % bands, normalised gradient descent on p from zero."
    return [Picture(name="p", caption=caption, panels=[panel], columns=1)]


def _joint_pictures(results: Results) -> list[Picture]:
    arrays = results["joint"]
    some = arrays["some"]
    series = [
        mean_curve(words, _RADII, list(arrays[name][:, some]), colour=k)
        for k, (name, words) in enumerate((("relaxed", "relaxed SVM"), ("whole", "SVM of all")))
    ]
    level: Series = {"kind": "level", "name": "", "x": np.zeros(1), "y": np.ones(1),
                     "colour": GREY, "style": 1}  # fmt: skip
    panel = Panel(title="sequences that do not support the head exist",
                  axes=("‖p‖", "correlation of p"), series=[*series, level],
                  logarithmic=(True, False))  # fmt: skip
    caption = (
        "Least loss over balls of p, with the max-margin head of norm ‖p‖^1.5: p turns to the SVM "
        "that separates only the sequences that support the head."
    )
    return [Picture(name="joint", caption=caption, panels=[panel], columns=1)]


EXPERIMENTS = (
    Experiment("F:global", "p alone, where all but the best tokens score alike", 100,
               (Point("one", {"shape": _ONE, "equal": True}),
                Point("six", {"shape": _SHAPE, "equal": True})),
               _alone, _global_claims, _course_pictures, measurements=_global_measurements),
    Experiment("F:local", "p alone: locally optimal selections", 100,
               (Point("local", {"shape": _SMALL, "equal": False}),),
               _alone, _local_claims, _course_pictures, measurements=_local_measurements),
    Experiment("F:joint", "p and v together: the relaxed SVM", 40, (Point("joint", {}),),
               _joint, _joint_claims, _joint_pictures, measurements=_measurements),
)  # fmt: skip
