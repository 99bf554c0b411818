"""Paper A: arrays by hand, and mutants."""

from typing import Any

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Change,
    Mutant,
    Results,
    add,
    close,
    constant,
    edit,
    exchange,
    exchange_points,
    first,
    flip,
    noise,
    numbers,
    random_directions,
    reverse,
    reverse_points,
)

RANDOM = "the solution is replaced by a random direction"


def fig1(key: str) -> Arrays:
    return {"correlation": close(5)}


def fig3(key: str) -> Arrays:
    return {"correlation": close(5), "attention": close(5)}


def fig4(key: str) -> Arrays:
    n, _, d = map(int, numbers(key))
    most = np.full(TRIALS, min(n, d))
    return {"fro": most, "nuc": np.maximum(most - 1, 1)}


def fig5(key: str) -> Arrays:
    place = (2, 3, 4, 5, 8, 10, 15, 20, 30, 50).index(int(numbers(key)[0]))
    return {"global": first(40 + 10 * place), "local": first(100), "B.1": first(10 * place)}


def fig6(key: str) -> Arrays:
    return {"global": first(100 if key.endswith("d60") else 50)}


def fig7(key: str) -> Arrays:
    high, low = close(11, TRIALS), 0.9 * close(11, TRIALS)
    W = key.startswith("W")
    steps = np.arange(11) * (2000 if "long" in key else 200)
    return {"steps": steps, "probability": high, "fro": high if W else low,
            "nuc": low if W else high}  # fmt: skip


def penalty(key: str) -> Arrays:
    fit = {"0": 0.99, "2.2e-16": 0.997, "1e-60": 0.99995, "1e-120": 0.999}[key]
    growth = np.ones(11) if key == "2.2e-16" else np.arange(1.0, 12.0)
    return {"steps": 500 * np.arange(11), "nuc": fit * close(11, TRIALS),
            "norm": growth[:, None] * (1.0 + noise(TRIALS))}  # fmt: skip


def fig8(key: str) -> Arrays:
    if "ones" in key:
        return {"most": np.ones(100, dtype=int), "clear": first(100)}
    fits = {"eq": 0.999, "gen": 0.98, "one": 0.8}
    arrays = {name: fit * close(3, TRIALS) for name, fit in fits.items()}
    return {**arrays, "eq_free": 0.95 * close(TRIALS), "masked": np.full(TRIALS, 1e-17),
            "drawn": np.array(100)}  # fmt: skip


def fig9(key: str) -> Arrays:
    selected = np.repeat([[1], [1], [2], [2], [3], [4], [5], [6], [8], [9], [10], [10]], TRIALS, 1)
    fit = np.where(selected == 1, 0.9999, np.where(selected < 6, 0.999, 0.99))
    fit = np.where(selected == 10, np.nan, fit * close(*fit.shape))
    kept = np.ones(fit.shape, dtype=bool)
    return {"plain": selected, "plain_clear": kept, "apart": 0.01 * noise(*fit.shape),
            "selected": selected, "clear": kept, "eq": fit, "gen": fit}  # fmt: skip


def fig10(key: str) -> Arrays:
    n, _, m = map(int, numbers(key))
    low = 0.01 if m >= {5: 2, 10: 4, 15: 6}[n] else 0.5
    return {"off": low * (1.0 + 0.1 * noise(TRIALS))}


def fig12(key: str) -> Arrays:
    tau = int(numbers(key)[0])
    return {"selected": np.random.default_rng(0).integers(2, tau + 1, TRIALS)}


def path(key: str) -> Arrays:
    return {"off": np.array([[1e-1], [1e-2], [1e-3], [1e-4]]) * (1.0 + noise(TRIALS))}


def sec7(key: str) -> Arrays:
    return {"descent": close(3, TRIALS), "path": close(2, TRIALS)}


def sec9(key: str) -> Arrays:
    selection = np.zeros((3, 4, 400, 5), dtype=int)
    if key == "few":
        selection[:, 1, :20] = 1
    return {"own": close(3, 4, 400), "pair": close(66, 400), "selection": selection}


def conjecture(key: str) -> Arrays:
    if key.startswith("d"):
        counts = {"trials": 50, "both": 40, "selected": 40, "least correlation": 0.9999}
        return {name: np.array(value) for name, value in counts.items()}
    kinds = ("zero", "random", "adversarial")
    arrays = {f"selected {kind}": np.ones(TRIALS, dtype=bool) for kind in kinds}
    fits = {f"fit {kind}": close(TRIALS) for kind in kinds}
    return {"d": np.arange(TRIALS) < 10, **arrays, **fits}


def other_starts(kind: str) -> tuple[Mutant, ...]:
    """Break the small instances from one start."""
    words = f"small .* {kind} start: "
    return (
        Mutant("other tokens are selected", f"{words}training selects",
               edit("n.*", **{f"selected {kind}": flip})),
        Mutant(RANDOM, f"{words}correlation", edit("n.*", **{f"fit {kind}": random_directions})),
    )  # fmt: skip


def selection_of(part: Any) -> Change:
    """Let some runs of Section 9 select other tokens."""

    def change(results: Results) -> None:
        for own in results.values():
            own["selection"][part] += 1

    return change


NOT_LOCAL = (
    Mutant("widths in reverse order", "Global for d|d before|d = 50 less", reverse_points("W.*")),
    Mutant("tokens that are not locally optimal", "share of Local", edit("W.*", local=flip)),
    Mutant("B.1 and Global exchanged", "share of Global less share of B.1",
           exchange("global", "B.1", "W.*")),
)  # fmt: skip

CASES = (
    Case("A:fig1", fig1, (
        Mutant(RANDOM, r"W\(k\)", edit("W", correlation=random_directions)),
        Mutant(RANDOM, "K Q", edit("KQ", correlation=random_directions)),
    )),
    Case("A:fig2", fig5, NOT_LOCAL),
    Case("A:fig3", fig3, (
        Mutant(RANDOM, "logistic", edit(correlation=random_directions)),
        Mutant(RANDOM, "attention", edit(attention=random_directions)),
    )),
    Case("A:fig4", fig4, (
        Mutant("ranks off by one", "above min", edit(fro=add(1), nuc=add(1))),
        Mutant("Frobenius and nuclear exchanged", "nuclear rank less", exchange("fro", "nuc")),
    )),
    Case("A:fig5", fig5, (
        *(Mutant(m.broken, f"^W: .*({m.breaks})", m.change) for m in NOT_LOCAL),
        Mutant("widths in reverse order", r"^\(K, Q\): .*(Global for d|d before|d = 50 less)",
               reverse_points("KQ.*")),
        Mutant("not locally optimal", r"^\(K, Q\): share of Local", edit("KQ.*", local=flip)),
        Mutant("B.1 and Global exchanged", r"^\(K, Q\): share of Global less share of B.1",
               exchange("global", "B.1", "KQ.*")),
    )),
    Case("A:fig6", fig6, (Mutant("widths in reverse order", "global", reverse_points()),)),
    Case("A:fig7", fig7, (
        Mutant("softmax of two equal tokens", "largest softmax", edit(probability=constant(0.5))),
        Mutant("Frobenius and nuclear exchanged", "solution", exchange("fro", "nuc")),
    )),
    Case("A:fig7-penalty", penalty, (
        Mutant("1e-60 and none exchanged", "no penalty|with 1e-60", exchange_points("1e-60", "0")),
        Mutant("1e-60 and 2.2e-16 exchanged", "less the published|stands still",
               exchange_points("1e-60", "2.2e-16")),
    )),
    Case("A:fig8", fig8, (
        Mutant("SVMeq and Gen-SVM exchanged", "mean correl|SVMeq less that with Gen-SVM",
               exchange("eq", "gen", "(text-)?d.*")),
        Mutant("Gen-SVM and one token exchanged", "Gen-SVM less that with one",
               exchange("gen", "one", "(text-)?d.*")),
        Mutant("the guard helps nothing", "guard less without",
               edit("d.*", eq_free=constant(1.0))),
        Mutant("two tokens selected", "all labels 1", edit("ones.*", most=add(1))),
    )),
    Case("A:fig9", fig9, (
        Mutant("λ in reverse order", "λ before|λ = 0|λ > 2", edit(plain=reverse)),
        Mutant("another mixture", "distance of the trained", edit(apart=add(0.1))),
        Mutant("nothing is clear-cut", "share of trials that the filter", edit(clear=flip)),
        Mutant(RANDOM, "continued: correlation", edit(eq=random_directions, gen=random_directions)),
        Mutant("more tokens fit better", "selected less",
               edit(eq=lambda x: 1.9 - x, gen=lambda x: 1.9 - x)),
    )),
    Case("A:fig10", fig10, (
        Mutant("m in reverse order", "quarter|least m", reverse_points()),
        Mutant("T changes the fit", "largest mean less smallest", edit("n5-T15-m5", off=add(0.2))),
    )),
    Case("A:fig11", fig8, (Mutant(RANDOM, "d = ", edit("d.*", eq=random_directions)),)),
    Case("A:fig12", fig12, (
        Mutant("single tokens", "τ", edit(selected=constant(1))),
        Mutant("all tokens", "τ", edit(selected=constant(10))),
    )),
    Case("A:path", path, (Mutant("radii in reverse order", "RP", edit(off=reverse)),)),
    Case("A:sec7", sec7, (
        Mutant(RANDOM, "descent meets", edit(descent=random_directions)),
        Mutant(RANDOM, "path meets", edit(path=random_directions)),
    )),
    Case("A:sec9", sec9, (
        Mutant(RANDOM, "SVM of the selected|the same with", edit(own=random_directions)),
        Mutant("pairs of other trials", "two runs", edit(pair=random_directions)),
        Mutant("another start selects other tokens", "depends on the start",
               selection_of((slice(None), 2))),
        Mutant("another step size selects other tokens", "step size$", selection_of((2,))),
        Mutant("few and many exchanged", "d = 5 less d = 20", exchange_points("few", "many")),
    )),
    Case("A:conjecture", conjecture, (
        Mutant("one run selects other tokens", "n = T = 5, instances",
               edit("d10", selected=add(-1))),
        Mutant("no instance has both", "n = T = 5: instances", edit("d.*", both=constant(0))),
        Mutant(RANDOM, "n = T = 5: their", edit("d.*", **{"least correlation": constant(0.1)})),
        *other_starts("zero"),
        *other_starts("random"),
        *other_starts("adversarial"),
    )),
)  # fmt: skip
