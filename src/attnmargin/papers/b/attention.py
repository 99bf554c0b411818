"""Paper B, figures 8 and 9: sparsity of weights, and attention to decisive words."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import rows_of, starts_of
from attnmargin.papers.b.pivotal import REVIEWS
from attnmargin.papers.b.table import (
    EDGES,
    POWERS,
    PROJECTIONS,
    SEEDS,
    runs_of,
    table_point,
)
from attnmargin.papers.b.table import (
    EXPERIMENTS as TABLE,
)
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    mean_of,
    more_than,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Results
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.report.pages.attention import MarkedText, write_attention
from attnmargin.text.classifier.analysis import LARGE, pivotal_shares

_SIZE = 3
_COMPARED = (1.1, 2.0)


# --- figure 8 --------------------------------------------------------------------------------


def _large(results: Results, p: float) -> NDArray[Any]:
    """Count the entries of at least 0.06 in W_K, W_Q and W_V, ``(seeds, 3)``."""
    return np.array([run["large"] for run in runs_of(results, _SIZE, p)])


def _claims_fig8(results: Results) -> list[Claim]:
    few, many = (_large(results, p) for p in _COMPARED)
    return [
        more_than(f"{name}: how many entries ≥ {LARGE} ℓ2 has more than ℓ1.1, mean of seeds", b, a)
        for name, a, b in zip(PROJECTIONS, few.T, many.T, strict=True)
    ]


def _pictures_fig8(results: Results) -> list[Picture]:
    counts = {p: _large(results, p).mean(0) for p in _COMPARED}
    seeds = len(runs_of(results, _SIZE, _COMPARED[0]))
    caption = (
        f"Sizes of the entries of all layers, size {_SIZE}, mean of {seeds} seeds; "
        f"only those of at least {LARGE}, as in the paper; stars: the largest entry. "
        + "; ".join(
            f"ℓ{p:g}: " + ", ".join(
                f"{name} {n:,.0f}" for name, n in zip(PROJECTIONS, counts[p], strict=True)
            )
            for p in _COMPARED
        )
        + " such entries."
    )  # fmt: skip
    panels = [_histogram(results, k) for k in range(len(PROJECTIONS))]
    return [Picture(name="fig8", caption=caption, panels=panels)]


def _histogram(results: Results, place: int) -> Panel:
    series = []
    first = int(np.searchsorted(EDGES, LARGE - 1e-9))
    centres = (EDGES[first:-1] + EDGES[first + 1 :]) / 2
    for k, p in enumerate(_COMPARED):
        runs = runs_of(results, _SIZE, p)
        y = np.mean([run["counts"][place, first:] for run in runs], 0)
        shown = y > 0
        largest = np.array([run["largest"][place] for run in runs])
        series += [
            Series(kind="line", name=f"ℓ{p:g}", x=centres[shown], y=y[shown], colour=k),
            Series(kind="points", name="_", x=largest, y=np.ones(len(runs)), colour=k, marker="*"),
        ]
    axes = (f"size of an entry of {PROJECTIONS[place]}", "entries per 0.01")
    return Panel(title=PROJECTIONS[place], axes=axes, series=series, logarithmic=(False, True))


# --- figure 9 --------------------------------------------------------------------------------


def _texts(run: Arrays) -> tuple[list[NDArray[Any]], list[list[str]]]:
    """Return the shares and words of the short reviews."""
    start = starts_of(run["lengths"])
    words = rows_of(run["words"], start)
    return rows_of(run["shares"], start), [list(map(str, row)) for row in words]


def _pivotal(results: Results, p: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the share and rank of the pivotal word, ``(seeds, reviews)``."""
    words = [review.pivotal for review in REVIEWS]
    found = [pivotal_shares(*_texts(run), words) for run in runs_of(results, _SIZE, p)]
    return np.stack([share for share, _ in found]), np.stack([rank for _, rank in found])


def _claims_fig9(results: Results) -> list[Claim]:
    sparse, plain = (_pivotal(results, p)[0] for p in _COMPARED)
    words = "reviews in which ℓ1.1 gives the pivotal word more attention than ℓ2 (paper: 3 of 5)"
    # Reviews share words and sentences, seeds do not: the error is that over seeds.
    share = mean_of((sparse > plain).mean(1))
    count = f"{sparse.shape[1]} reviews, mean of seeds"
    return [
        at_least(f"share of {words}; {count}", share, 0.6),
        more_than("attention to the pivotal word: ℓ1.1 less ℓ2, mean of seeds",
                  sparse.mean(1), plain.mean(1)),
    ]  # fmt: skip


def _pictures_fig9(results: Results) -> list[Picture]:
    found = {p: _pivotal(results, p) for p in POWERS}
    count = found[1.1][1].size
    caption = (
        "Attention of the first position, mean of layers and heads, to the word that decides a "
        "short review; mean and range over seeds. The pivotal word is ranked first "
        + ", ".join(f"{(rank == 1).sum()} of {count} times by ℓ{p:g}"
                    for p, (_, rank) in found.items())
        + "."
    )  # fmt: skip
    groups = np.array_split(np.arange(len(REVIEWS)), 3)
    panels = [_shares({p: 100 * share[:, g] for p, (share, _) in found.items()}, g) for g in groups]
    return [Picture(name="fig9", caption=caption, panels=panels)]


def _shares(shares: dict[float, NDArray[Any]], places: NDArray[Any]) -> Panel:
    """Draw bars for some reviews, in percent; shares are ``(seeds, reviews)`` for each power."""
    series = [
        Series(kind="bar", name=f"ℓ{p:g}", x=np.arange(len(places)), y=share.mean(0),
               low=share.min(0), high=share.max(0))
        for p, share in shares.items()
    ]  # fmt: skip
    ticks = [REVIEWS[i].pivotal for i in places]
    return Panel(title="attention to the pivotal word", axes=("", "share, %"), series=series,
                 ticks=ticks)  # fmt: skip


def _page_fig9(results: Results, folder: Path) -> list[Path]:
    """Write the reviews as coloured text, for every power, with seed 0."""
    groups = {}
    for p in POWERS:
        shares, words = _texts(results[table_point(_SIZE, p, 0).key])
        groups[f"ℓ{p:g} mirror descent"] = [
            MarkedText(own, share, review.pivotal)
            for own, share, review in zip(words, shares, REVIEWS, strict=True)
        ]
    return [write_attention(folder / "attention.html", groups)]


def _points(powers: tuple[float, ...]) -> tuple[Any, ...]:
    return tuple(table_point(_SIZE, p, seed) for p in powers for seed in SEEDS[_SIZE])


_FROM_TABLE: dict[str, Any] = {"source": "B:table1", "unit": "run", "needs": TABLE[0].needs,
                               "partial": True}  # fmt: skip
EXPERIMENTS = (
    Experiment("B:fig8", "Sparsity of attention weights, ℓ1.1 against ℓ2", 1, _points(_COMPARED),
               TABLE[0].run, _claims_fig8, _pictures_fig8, **_FROM_TABLE),
    Experiment("B:fig9", "Attention to the words that decide short reviews", 1,
               _points(POWERS), TABLE[0].run, _claims_fig9, _pictures_fig9,
               files=_page_fig9, **_FROM_TABLE),
)  # fmt: skip
