"""T:noise: token-priority graphs of choices of which some are random, against the planted truth."""

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.seeds import seed_of
from attnmargin.graphs import (
    PlantedChoices,
    TokenGraphs,
    planted_choices,
    scores,
    split_graphs,
    token_graphs,
    without_noise,
)
from attnmargin.papers.engine.claims import Claim, at_least, share_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture

_SEQUENCES, _TEST = 3000, 0.2
_LEVELS = (0.0, 0.05, 0.1, 0.2)
# How far the estimated share of noise may be from the true one.
_NEAR = 0.02
_RULES = ("automaton", "bigram", "most frequent", "uniform")


def _run(task: Task) -> Arrays:
    found = []
    for trial in range(task.trials):
        seed = seed_of("T:noise", trial, base=task.seed)
        found.append(_trial(planted_choices(_SEQUENCES, task.settings["noise"], seed=seed), seed))
        task.progress(trial + 1, task.trials)
    return {name: np.stack([own[name] for own in found]) for name in found[0]}


def _trial(data: PlantedChoices, seed: int) -> Arrays:
    """Compare the graphs of one draw with the planted ones, and predict a fifth of the choices."""
    strict = token_graphs(data.sequences, data.labels, data.vocabulary)
    graphs = without_noise(strict)
    train, unseen = split_graphs(strict, _TEST, seed)
    assert train.samples is not None
    judged = scores(without_noise(train), train.samples, unseen)
    return {
        "recovered": recovered(graphs, data),
        "strict": recovered(strict, data),
        "noise": np.array(0.0 if graphs.noise is None else graphs.noise.total),
        "same": np.array(_same(graphs, strict)),
        "loss": np.array([own.loss for own in judged]),
        "accuracy": np.array([own.accuracy for own in judged]),
    }


def recovered(graphs: TokenGraphs, data: PlantedChoices) -> NDArray[np.bool_]:
    """Test, per last token, if the components of the options and their order are the planted ones.

    The last token itself is never chosen but by noise, and left out of the comparison.
    """
    found = []
    for last, components in data.components.items():
        parts = [sorted(set(part) - {last}) for part in graphs[last].components]
        found.append([part for part in parts if part] == components)
    return np.array(found)


def _same(first: TokenGraphs, second: TokenGraphs) -> bool:
    names = ("last", "token", "source", "target", "component", "layer")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key, arrays in results.items():
        level = float(key)
        words = f"{level:.0%} noise"
        near = np.abs(arrays["noise"] - level) <= _NEAR
        beaten = arrays["loss"][:, 0] < arrays["loss"][:, 1:].min(1)
        claims += [
            at_least(f"{words}: last tokens whose components and order are found",
                     share_of(arrays["recovered"]), 0.95),
            at_least(f"{words}: draws whose share of noise is found within {100 * _NEAR:g} points",
                     share_of(near), 0.95),
            at_least(f"{words}: draws where the automaton's log-loss is below every other rule's",
                     share_of(beaten), 0.95),
        ]  # fmt: skip
        if level == 0.0:
            claims.append(at_least(f"{words}: draws with the graphs of paper C, bit for bit",
                                   share_of(arrays["same"]), 1.0))  # fmt: skip
    return claims


def _measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"{float(key):.0%} noise: {words}", float(value))
        for key, arrays in results.items()
        for words, value in (
            ("last tokens found by the definition of paper C", arrays["strict"].mean()),
            ("mean of the estimated share", arrays["noise"].mean()),
            *((f"log-loss, {rule}", arrays["loss"][:, k].mean()) for k, rule in enumerate(_RULES)),
            *((f"accuracy, {rule}", arrays["accuracy"][:, k].mean())
              for k, rule in enumerate(_RULES)),
        )
    ]  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    x = 100.0 * np.array([float(key) for key in results])
    every = list(results.values())
    recovery = [
        mean_curve(name, x, [100.0 * own[kind].mean(1) for own in every])
        for name, kind in (("noise told apart", "recovered"), ("definition of paper C", "strict"))
    ]
    estimate = [mean_curve("estimated", x, [100.0 * own["noise"] for own in every])]
    losses = [
        mean_curve(rule, x, [own["loss"][:, k] for own in every]) for k, rule in enumerate(_RULES)
    ]
    noise = "% of choices that are random"
    panels = [
        Panel(title="components and order", axes=(noise, "% of last tokens found"),
              series=recovery),
        Panel(title="share of noise", axes=(noise, "estimated, %"), series=estimate),
        Panel(title="unseen choices", axes=(noise, "log-loss"), series=losses),
    ]  # fmt: skip
    caption = (
        f"{_SEQUENCES:,} choices between two of five options in eight situations, each with its "
        "own order of components; some choices are random. By the definition of paper C a single "
        "random choice can join components."
    )
    return [Picture(name="noise", caption=caption, panels=panels, columns=3)]


EXPERIMENTS = (
    Experiment("T:noise", "Graphs of choices of which some are random", 100,
               tuple(Point(f"{level:g}", {"noise": level}) for level in _LEVELS),
               _run, _claims, _pictures, measurements=_measurements, unit="draws"),
)  # fmt: skip
