"""Paper B: arrays by hand, and mutants."""

import re

import numpy as np
from numpy.typing import NDArray

from attnmargin.papers.b.pivotal import REVIEWS
from attnmargin.papers.b.table import PAPER, SEEDS, table_point
from attnmargin.papers.engine.experiment import Arrays, Task
from attnmargin.papers.registry import find
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    Results,
    add,
    close,
    constant,
    edit,
    exchange,
    exchange_points,
    flip,
    noise,
    numbers,
    random_directions,
    reverse,
)

RANDOM = "the solution is replaced by a random direction"
POWERS = ("1.75", "2", "3")


def computed(name: str) -> Arrays:
    """Run an experiment of a single point."""
    return find(name).run(Task({}, 1, 0, lambda done, total: None))


def example1(key: str) -> Arrays:
    return computed("B:example1")


def fig3(key: str) -> Arrays:
    return computed("B:fig3")


def fig4(key: str) -> Arrays:
    own = f"{numbers(key)[0]:g}"
    target = np.array([1.0, 0.5])
    far = {f"far{p}": (0.001 if p == own else 0.1) * (1.0 + noise(3, TRIALS)) for p in POWERS}
    return {**far, "entries": np.outer(np.arange(5.0), target), "target": target}


def fig6(key: str) -> Arrays:
    names = ("W_correlation", "v_correlation", "softmax", "logistic")
    return {name: close(3) for name in names}


def table1(key: str) -> Arrays:
    """Build a run with the accuracy of the paper, few large entries and much attention for ℓ1.1."""
    if key == "data":
        return {}
    size, p, seed = numbers(key)
    best = PAPER[int(size)][p] / 100 + 1e-4 * seed
    words = [re.findall(r"[\w-]+", review.text) for review in REVIEWS]
    shares = [_shares(own, review.pivotal, 2.0 if p < 2 else 1.0)
              for own, review in zip(words, REVIEWS, strict=True)]  # fmt: skip
    return {
        "test": best - np.array([0.1, 0.0, 0.02]),
        "large": (10 if p < 2 else 90) + np.arange(3) + int(seed),
        "words": np.array([word for own in words for word in own]),
        "lengths": np.array([len(own) for own in words]),
        "shares": np.concatenate(shares) + 1e-4 * seed,
    }


def _shares(words: list[str], pivotal: str, weight: float) -> NDArray[np.float64]:
    raw = np.array([weight if word == pivotal else 1.0 for word in words])
    return raw / raw.sum()


def other_order(results: Results) -> None:
    """Exchange the best and the worst power of every size."""
    for size, own in PAPER.items():
        best, worst = max(own, key=lambda p: own[p]), min(own, key=lambda p: own[p])
        for seed in SEEDS[size]:
            a, b = (table_point(size, p, seed).key for p in (best, worst))
            results[a], results[b] = results[b], results[a]


def one_run_missing(results: Results) -> None:
    for size in SEEDS:
        for p in (1.1, 2.0, 3.0):
            del results[table_point(size, p, 0).key]


def rates(key: str) -> Arrays:
    steps = 250 * np.arange(1, 201)
    return {"steps": steps, "far": (np.log(steps) ** -3.0)[:, None] * (1.0 + noise(TRIALS))}


def path(key: str) -> Arrays:
    fall = np.array([1.0, 1e-1, 1e-2, 1e-4])
    if key.startswith("random"):
        return {"largest": np.ones(100, dtype=bool), "above": -noise(TRIALS)}
    if key.startswith("joint"):
        far = np.outer(fall, [1.0, 2.0])
        return {"far": far, "margin": np.arange(9.0), "chosen": np.array(8)}
    return {"far": np.outer(fall, 1.0 + noise(TRIALS))}


def far_from(key: str) -> Mutant:
    """Break what fits the path of one power."""
    change = edit(f"q{key}(-far)?", **{f"far{key}": constant(0.5)})
    return Mutant(RANDOM, f"^ℓ{key} path", change)


CASES = (
    Case("B:example1", example1, (
        Mutant("p = 2 and p = 3 exchanged", "printed|ℓ3 norm", exchange("two", "three")),
        Mutant("a solver that stops early", "duality gap", edit(gap=add(1e-6))),
    )),
    Case("B:fig2", example1, (
        Mutant("the transpose of W", "least margin", edit(three=np.transpose)),
        Mutant("other tokens selected", "least margin", edit(three=flip)),
    )),
    Case("B:fig3", fig3, (Mutant("choices in reverse order", "margin", edit(margin=reverse)),)),
    Case("B:fig4", fig4, tuple(far_from(key) for key in POWERS)),
    Case("B:fig5", fig4, (
        Mutant("one sign flipped", "cosine", edit(target=lambda x: x * [1.0, -1.0])),
        Mutant("entries of another place", "cosine", edit(target=reverse)),
    )),
    Case("B:fig6", fig6, (
        Mutant(RANDOM, "correlation of W", edit(W_correlation=random_directions)),
        Mutant(RANDOM, "correlation of v", edit(v_correlation=random_directions)),
    )),
    Case("B:fig7", fig6, (
        Mutant("softmax of two equal tokens", "softmax", edit(softmax=constant(0.5))),
        Mutant("labels exchanged", "logistic", edit(logistic=lambda x: 1.0 - x)),
    )),
    Case("B:fig8", table1, (Mutant("powers exchanged", "W_", exchange_points("l1.1", "l2")),)),
    Case("B:fig9", table1, (
        Mutant("powers exchanged", "reviews|attention", exchange_points("l1.1", "l2")),
    )),
    Case("B:rates", rates, (
        Mutant("time runs backwards", "power", edit(far=reverse)),
        Mutant("divergence stays", "power", edit(far=lambda x: np.ones_like(x))),
    )),
    Case("B:path", path, (
        Mutant("radii in reverse order", "divergence at R", edit("(W|joint).*", far=reverse)),
        Mutant("another selection", "label margin of what", edit("joint.*", chosen=constant(0))),
        Mutant("other selections", "share of joint", edit("random.*", largest=flip)),
        Mutant("one path is not the best", "log L",
               edit("random.*", above=lambda x: np.append(x[1:], 1e-3))),
    )),
    Case("B:table1", table1, (
        Mutant("best and worst power exchanged", "order|test accuracy", other_order),
        Mutant("one seed is not trained", "order|test accuracy", one_run_missing),
    )),
)  # fmt: skip
