"""Paper C: arrays by hand, and mutants."""

import numpy as np

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
    flip,
    noise,
    none,
    random_directions,
    reverse,
)

RANDOM = "the solution is replaced by a random direction"


def fig2(key: str) -> Arrays:
    return find("C:fig2").run(Task({}, 1, 0, lambda done, total: None))


def descent(key: str) -> Arrays:
    fits = {name: close(3, TRIALS) for name in ("correlation", "long_correlation")}
    return {**fits, "distance": 1e-3 * noise(3, TRIALS)}


def local(key: str) -> Arrays:
    yes = np.ones(TRIALS, dtype=bool)
    return {"local_correlation": close(3, TRIALS), "global_correlation": 0.9 * close(3, TRIALS),
            "local_distance": np.zeros((3, TRIALS)), "global_distance": 1.0 + noise(3, TRIALS),
            "local_solved": yes, "global_solved": yes, "local_acyclic": yes}  # fmt: skip


def convexity(key: str) -> Arrays:
    return {"least": -1e-16 * noise(TRIALS), "inside": 0.1 + noise(TRIALS),
            "gradient": 1e-14 * noise(TRIALS)}  # fmt: skip


def orthogonal(key: str) -> Arrays:
    return {name: 1e-16 * noise(TRIALS) for name in ("inner", "outside", "inside")}


def path(key: str) -> Arrays:
    off = np.outer([1.0, 0.3, 0.1, 1e-2, 1e-4], 1.0 + noise(TRIALS))
    return {"off": off, "distance": 1e-3 * off}


def automaton(key: str) -> Arrays:
    """Build three prompts seen in training and three new ones, the last decided by a margin."""
    rule = np.array([*["retrieval"] * 3, "composition", "retrieval", "margin"])
    return {"variation": 1e-3 * noise(2, TRIALS, 6), "long": 1e-6 * noise(TRIALS, 6),
            "rule": np.tile(rule, (TRIALS, 1)), "margin": np.ones((TRIALS, 6)),
            "known": np.arange(6) < 3}  # fmt: skip


def other_sequences(results: Results) -> None:
    """Let every sequence end in its first token."""
    results["data"]["sequences"] = results["data"]["sequences"][:, ::-1]


def other_labels(results: Results) -> None:
    """Let every first token be the label."""
    results["data"]["labels"] = results["data"]["sequences"][:, 0]


def wrong_prompt(name: str, place: int) -> Mutant:
    """Let the model say something else to one prompt."""
    claims = {"variation": ("training sequences of", "", "", "new prompts"),
              "long": ("both",) * 5 + ("margin above",)}  # fmt: skip

    def change(results: Results) -> None:
        results["data"][name][..., 0, place] = 0.5

    return Mutant("another distribution for one prompt", claims[name][place], change)


DESCENT = (
    Mutant(RANDOM, "mean correlation", edit(correlation=random_directions)),
    Mutant(RANDOM, "after 20000|the same, worst trial$", edit(long_correlation=random_directions)),
)
LOCAL = (
    Mutant(RANDOM, "mean correlation", edit(local_correlation=random_directions)),
    Mutant("local and global exchanged", "less that with|at least as good",
           exchange("local_correlation", "global_correlation")),
    Mutant("local and global exchanged", "cyclic distance",
           exchange("local_distance", "global_distance")),
)  # fmt: skip

CASES = (
    Case("C:fig2", fig2, (
        Mutant("sequences from right to left", "last tokens|components", other_sequences),
        Mutant("first tokens for labels", "cyclic samples|keep|right|O of|R of", other_labels),
    )),
    Case("C:fig3", descent, DESCENT),
    Case("C:fig4", descent, (
        *DESCENT,
        Mutant("another finite part", "mean ‖Π|the same, worst trial again$",
               edit(distance=add(1.0))),
    )),
    Case("C:fig5", local, (
        *LOCAL,
        Mutant("one graph has a cycle", "single tokens",
               edit(local_acyclic=lambda x: np.append(x[1:], False))),
    )),
    Case("C:fig6", local, LOCAL),
    Case("C:convexity", convexity, (
        Mutant("a loss that is concave somewhere", "Hessians", edit(least=add(-1e-6))),
        Mutant("a subspace with a flat direction", "on the cyclic", edit(inside=constant(0.0))),
        Mutant("no data set", "on the cyclic", edit(inside=none)),
        Mutant("Newton's method stops early", "gradient", edit(gradient=add(1e-6))),
    )),
    Case("C:orthogonal", orthogonal, (
        Mutant("W_mm of other data", r"⟨W_cyc, W_mm⟩", edit(inner=add(-0.1))),
        Mutant("S_cyc of other data", "W_cyc outside", edit(outside=add(0.1))),
        Mutant("W_mm of other data", "W_mm inside", edit(inside=add(0.1))),
    )),
    Case("C:path", path, (
        Mutant("radii in reverse order", "always falls|misalignment at", edit(off=reverse)),
        Mutant("another finite part", "Π_cyc", edit("general", distance=add(1.0))),
    )),
    Case("C:automaton", automaton, (
        wrong_prompt("variation", 0),
        wrong_prompt("variation", 3),
        wrong_prompt("long", 3),
        wrong_prompt("long", 5),
        Mutant("new prompts for training sequences", "share of training", edit(known=flip)),
    )),
)  # fmt: skip
