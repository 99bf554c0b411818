"""E:fig1: three contexts in the plane, five words, and the decoder that descent grows along."""

import numpy as np
import torch

from attnmargin.decoders import NextWords, descend, finite_part, flow, next_words
from attnmargin.papers.engine.claims import Claim, at_least, at_most, least_of, stated
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.plot.panels import GREY, Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training.measures import correlation

# The paper prints the supports in words only: word 3 follows A alone, every other word follows two
# contexts, three words follow each. Up to names there is one way; contexts are our own.
CONTEXTS = ((-0.95, 0.3), (0.7, 0.7), (0.15, -1.0))
FOLLOWS = ((0, 1, 2), (0, 3, 4), (1, 3, 4))
_SHARES = ((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.4, 0.25, 0.35))
_TIMES = tuple(float(t) for t in np.geomspace(1.0, 300.0, 40))
_STEPS, _RATE = 10_000, 1.0


def setting() -> NextWords:
    """Build the three contexts and the five words."""
    p = np.zeros((3, 5))
    for j, (words, shares) in enumerate(zip(FOLLOWS, _SHARES, strict=True)):
        p[j, list(words)] = shares
    return next_words(CONTEXTS, p, words=("1", "2", "3", "4", "5"), names=("A", "B", "C"))


def _run(task: Task) -> Arrays:
    data = setting()
    solution, equations = solve(data.problem), solve(data.equations)
    plain = descend(data, _STEPS, _RATE, 100)
    path = flow(data, _TIMES, progress=task.progress)
    best = finite_part(data)
    return {
        "verdict": np.array([bool(equations.optimal), bool(solution.optimal)]),
        "svm": solution.W.numpy(),
        "finite": best.W.numpy(),
        "trained": path.W[-1].numpy(),
        "grown": path.growing[-1].numpy(),
        "words": path.growing.numpy(),
        "off": torch.linalg.matrix_norm(path.finite - best.W).numpy(),
        "correlation": correlation(path.growing, solution.W).numpy(),
        "plain_correlation": correlation(plain.growing, solution.W).numpy()[1:],
        "aligned": torch.nn.functional.cosine_similarity(
            solution.W[2], data.contexts[0], 0
        ).numpy(),
    }


def _claims(results: Results) -> list[Claim]:
    own = results["all"]
    both = bool(own["verdict"].all())
    return [
        stated("the setting is compatible and separable", float(both), "1", both),
        at_most("part inside the span after training: distance to W⋆", float(own["off"][-1]), 1e-3),
        at_least("the rest after training: correlation with the NTP-SVM",
                 least_of(own["correlation"][-1:]), 0.999),
        at_least("word 3 follows A alone: cosine of its row with A", float(own["aligned"]), 0.9),
    ]  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    own = results["all"]
    W, grown = own["svm"], own["grown"]
    scale = 1.3 / np.linalg.norm(W, axis=1).max()
    grown = grown * np.linalg.norm(W) / np.linalg.norm(grown)
    h = np.array(CONTEXTS)
    plane: list[Series] = [
        {"kind": "points", "name": "", "x": h[:, 0], "y": h[:, 1], "colour": GREY,
         "marker": "o", "size": 9.0},
    ]  # fmt: skip
    supports = [
        f"{name}: {', '.join(str(z + 1) for z in words)}"
        for name, words in zip("ABC", FOLLOWS, strict=True)
    ]
    labels = [*supports, "word 1", "word 2", "word 3", "words 4 and 5"]
    places = np.concatenate([h, scale * W[[0, 1, 2, 4]]])
    plane.append({"kind": "names", "name": "", "x": places[:, 0], "y": places[:, 1],
                  "labels": labels})  # fmt: skip
    for v in range(5):
        x, y = scale * W[v]
        plane += [
            {"kind": "arrow", "name": "", "x": np.array([0.0, x]), "y": np.array([0.0, y]),
             "colour": v},
            {"kind": "points", "name": "", "x": np.array([x]), "y": np.array([y]),
             "colour": v, "marker": "*", "size": 11.0},
            {"kind": "points", "name": "", "x": scale * grown[v : v + 1, 0],
             "y": scale * grown[v : v + 1, 1], "colour": v, "marker": "ring", "size": 12.0},
        ]  # fmt: skip
    times = np.array(_TIMES)
    curves: list[Series] = [
        {"kind": "line", "name": "part inside the span: distance to W⋆", "x": times,
         "y": np.maximum(own["off"], 1e-16)},
        {"kind": "line", "name": "the rest: 1 − correlation with the NTP-SVM", "x": times,
         "y": np.maximum(1.0 - own["correlation"], 1e-16), "style": 1},
    ]  # fmt: skip
    caption = (
        "Left: three contexts in the plane with the words that follow them, rows of the NTP-SVM "
        "(stars), and rows of the trained decoder without its finite part (rings), one length for "
        "all. Word 3 follows A alone and points to A. Right: distances along gradient flow."
    )
    panels = [
        Panel(title="contexts and words", axes=("first coordinate", "second coordinate"),
              series=plane, square=True, limits=(-1.4, 1.5), across=(-1.5, 1.6)),
        Panel(title="training meets both parts",
              axes=("logarithm of the time (log t)", "distance"), series=curves,
              logarithmic=(True, True)),
    ]  # fmt: skip
    return [Picture(name="fig1", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("E:fig1", "Three contexts, five words, in the plane", 1, (Point("all"),),
               _run, _claims, _pictures, unit="example"),
)  # fmt: skip
