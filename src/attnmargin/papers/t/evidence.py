"""T:evidence: false discoveries, power and coverage of token evidence in planted corpora."""

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.seeds import seed_of
from attnmargin.papers.engine.claims import Claim, at_least, at_most, mean_of, more_than
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.plot.panels import GREY, Panel, Picture, Series
from attnmargin.text.tokens.counts import count_texts
from attnmargin.text.tokens.evidence import LEVEL, Evidence, Interval
from attnmargin.text.tokens.planted import STRENGTHS, PlantedCorpus, planted_corpus

# Texts, shares of the positive class, words, deciding ones, and the mean length of texts.
_TEXTS, _SHARES = (1000, 3000, 10_000), (0.5, 0.2, 0.05)
_WORDS, _DECIDING, _LENGTH = 20_000, 200, 60
# Bounds of the claims, and the occurrences from which `attnmargin tokens` keeps a token.
_FALSE, _COVERED, _KEPT = 0.06, 0.94, 50


def key_of(n: int, share: float) -> str:
    """Return the name of a point."""
    return f"{n}-{share:g}"


def _run(task: Task) -> Arrays:
    rows = []
    for trial in range(task.trials):
        planted = planted_corpus(
            task.settings["n"], words=_WORDS, deciding=_DECIDING, shares=task.settings["share"],
            length=_LENGTH, seed=seed_of("T:evidence", trial, base=task.seed),
        )  # fmt: skip
        rows.append(measured(planted))
        task.progress(trial + 1, task.trials)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def measured(planted: PlantedCorpus) -> dict[str, float | NDArray[np.float64]]:
    """Compare the evidence of a corpus with the truth."""
    evidence = Evidence(count_texts(planted.pieces))
    seen, found = evidence.counts.occurrences.sum(1), evidence.found
    noise = planted.deciding < 0
    strength = np.log(planted.rates[1] / planted.rates[0]) / 2.0
    levels = [~noise & np.isclose(np.abs(strength), level) for level in STRENGTHS]
    covered = {
        "difference": _inside(evidence.difference, planted.difference()),
        "alpha": _inside(evidence.alpha, planted.alpha()),
    }
    shares: dict[str, float | NDArray[np.float64]] = {
        "false": float((found & noise).sum() / max(found.sum(), 1)),
        "found": float(found.sum()),
        "power": np.array([found[level].mean() if level.any() else np.nan for level in levels]),
    }
    for name, own in covered.items():
        shares[name] = float(own[seen > 0].mean())
        shares[f"{name} kept"] = float(own[seen >= _KEPT].mean())
        shares[f"{name} found"] = float(own[found].mean()) if found.any() else np.nan
    return shares


def _inside(ends: Interval, truth: NDArray[np.float64]) -> NDArray[np.bool_]:
    low, high = ends
    return (low <= truth) & (truth <= high)


def _words(key: str) -> str:
    n, share = key.split("-")
    return f"{int(n):,} texts, {float(share):.0%} positive"


_QUANTITIES = {"difference": "posterior difference", "alpha": "signed frequency"}


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key, own in results.items():
        text = f"{_words(key)}: share of false discoveries at level {LEVEL:g}"
        claims.append(at_most(text, mean_of(own["false"]), _FALSE))
        for name, words in _QUANTITIES.items():
            for kind, whose in (("", "all tokens"), (" kept", f"tokens seen {_KEPT} times")):
                text = f"{_words(key)}: intervals of the {words} that cover, {whose}"
                claims.append(at_least(text, mean_of(own[f"{name}{kind}"]), _COVERED))
    for share in _SHARES:
        few, many = (results[key_of(n, share)]["power"].mean(1) for n in (_TEXTS[0], _TEXTS[-1]))
        text = f"{share:.0%} positive: deciding words found, by {_TEXTS[-1]:,} and {_TEXTS[0]:,}"
        claims.append(more_than(text, many, few, 0.1))
    return claims


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for key, own in results.items():
        found.append(Measurement(f"{_words(key)}: share of deciding words found",
                                 float(own["power"].mean())))  # fmt: skip
        for name, words in _QUANTITIES.items():
            text = f"{_words(key)}: intervals of the {words} that cover, tokens found as evidence"
            found.append(Measurement(text, float(np.nanmean(own[f"{name} found"]))))
    return found


def _pictures(results: Results) -> list[Picture]:
    x = np.array(_TEXTS, float)
    panels = [
        Panel(title=f"{share:.0%} of the texts are positive",
              axes=("texts", "share of deciding words that are found"),
              series=[_curve(f"rate × {np.exp(level):.2f}", x, results, share, k)
                      for k, level in enumerate(STRENGTHS)],
              logarithmic=(True, False), limits=(0.0, 1.02))
        for share in _SHARES
    ]  # fmt: skip
    caption = (
        f"{_DECIDING} deciding words among {_WORDS:,}, texts of {_LENGTH} words on average: the "
        "share of the deciding words that is found, by the factor of their rate in the own class; "
        f"in the other, it is divided by it. At level {LEVEL:g}, at most "
        f"{max(own['false'].mean() for own in results.values()):.2%} of what is found is false."
    )
    return [Picture(name="power", caption=caption, panels=panels, columns=3),
            _coverage_picture(results)]  # fmt: skip


def _curve(name: str, x: NDArray[np.float64], results: Results, share: float, k: int) -> Series:
    own = [results[key_of(n, share)]["power"][:, k] for n in _TEXTS]
    y = np.array([values.mean() for values in own])
    half = np.array([1.96 * values.std() / np.sqrt(len(values)) for values in own])
    return Series(kind="line", name=name, x=x, y=y, low=y - half, high=y + half)


def _coverage_picture(results: Results) -> Picture:
    keys, x = list(results), np.arange(len(results))
    panels = []
    for name, words in _QUANTITIES.items():
        bars = [
            Series(kind="points", name=whose, x=x, marker=marker,
                   y=np.array([np.nanmean(results[key][f"{name}{kind}"]) for key in keys]))
            for kind, whose, marker in (("", "all tokens", "o"),
                                        (" kept", f"seen {_KEPT} times", "*"),
                                        (" found", "found as evidence", "ring"))
        ]  # fmt: skip
        bound = Series(kind="level", name="95 %", x=x[:1], y=np.array([0.95]), colour=GREY, style=1)
        panels.append(Panel(title=words, axes=("texts, share positive", "intervals that cover"),
                            series=[*bars, bound], ticks=[key.replace("-", "\n") for key in keys],
                            limits=(0.9, 1.0)))  # fmt: skip
    caption = "The share of 95 % intervals that cover the true value, by texts and imbalance."
    return Picture(name="coverage", caption=caption, panels=panels, columns=2)


EXPERIMENTS = (
    Experiment("T:evidence", "Evidence in planted corpora: false discoveries, power, coverage",
               200,
               tuple(Point(key_of(n, share), {"n": n, "share": share})
                     for share in _SHARES for n in _TEXTS),
               _run, _claims, _pictures, measurements=_measurements, unit="corpora"),
)  # fmt: skip
