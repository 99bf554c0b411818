"""Paper D, figures 2 and 3 and the tables of tokens: all parameters of model (1) trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.device import device_of
from attnmargin.base.files import own_place, write_whole
from attnmargin.embeddings.instances import level_tokens
from attnmargin.papers.d.corpora import (
    CORPORA,
    NEEDS,
    clouds,
    corpus_clouds,
    of_corpus,
    read_reviews,
    reviews_sentence,
    settings_of,
    statistics_of,
    token_claims,
    trained,
)
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    at_most,
    correlation_of,
    largest_of,
    mean_of,
    share_of,
    stated,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.importance import FREQUENT
from attnmargin.text.tokens.training import TokenRecipe, train_tokens

# --- figure 2 --------------------------------------------------------------------------------

_N2, _T2 = 16384, 256
# The recipe of the paper, which does not say how many sequences it draws.
_RECIPE2 = TokenRecipe(d=2048, lr=1e-4, batch=128, epochs=196, drops=(100,), decay=1e-4, parts=1)


def _run_fig2(task: Task) -> Arrays:
    data, exact = level_tokens(_N2, _T2, seed=task.seed)
    start = np.arange(0, data.ids.size + 1, _T2)
    names = [str(s) for s in range(data.vocabulary)]
    pieces = Pieces(data.ids.ravel().astype(np.int32), start, (data.y + 1) // 2, names)
    recipe = replace(_RECIPE2, seed=task.seed)
    run = train_tokens(pieces, recipe, device=device_of("auto"), progress=task.progress)
    return trained(run) | {"exact": exact, "difference": data.statistics().difference}


def _rank(x: NDArray[Any], y: NDArray[Any]) -> Measured:
    from scipy.stats import spearmanr

    return correlation_of(float(spearmanr(x, y)[0]), len(x))


def _claims_fig2(results: Results) -> list[Claim]:
    own = results["levels"]
    relevant = own["exact"] != 0
    x, to_p, to_v = (own[name][relevant] for name in ("difference", "with_p", "with_v"))
    same = np.sign(to_v) == np.sign(own["exact"][relevant])
    return [
        at_least("rank correlation of ⟨E, p⟩ with |posterior difference|, relevant tokens",
                 _rank(to_p, np.abs(x)), 0.9),
        at_least("rank correlation of ⟨E, v⟩ with the posterior difference, relevant tokens",
                 _rank(to_v, x), 0.9),
        at_least("share of relevant tokens whose ⟨E, v⟩ has the right sign", share_of(same), 0.99),
        *_cloud_claims(own["difference"], np.abs(own["with_v"]), own["exact"]),
    ]  # fmt: skip


def _cloud_claims(x: NDArray[Any], size: NDArray[Any], exact: NDArray[np.float64]) -> list[Claim]:
    """Claim that the point cloud around zero is the set of irrelevant tokens.

    Relevant tokens begin at a posterior difference of 0.1; the cloud lies within half of that.
    """
    irrelevant = exact == 0
    least = float(np.abs(exact[~irrelevant]).min())
    inside = np.abs(x) < least / 2
    return [
        at_least(f"share of tokens with |posterior difference| < {least / 2:g} that are irrelevant",
                 share_of(irrelevant[inside]), 0.99),
        at_most("largest |posterior difference| of an irrelevant token, over the least of a level",
                largest_of(np.abs(x[irrelevant]) / least), 1.0),
        at_most("mean |⟨E, v⟩| of irrelevant tokens over that of relevant ones",
                mean_of(size[irrelevant] / size[~irrelevant].mean()), 0.5),
    ]  # fmt: skip


def _pictures_fig2(results: Results) -> list[Picture]:
    own = results["levels"]
    groups = {"relevant": own["exact"] != 0, "irrelevant": own["exact"] == 0}
    caption = (
        f"The K-level model (34): {_N2:,} sequences of {_T2}, 2,048 tokens, d = {_RECIPE2.d}; "
        f"all parameters of model (1) trained, {_RECIPE2.epochs} epochs, loss "
        f"{own['loss'][-1]:.2g}. The posterior difference is that of the data, eq. (37)."
    )
    panels = clouds(own["difference"], own, "K-level model", groups)
    return [Picture(name="fig2", caption=caption, panels=panels)]


# --- figure 3 --------------------------------------------------------------------------------

RECIPE = TokenRecipe(d=64, lr=2e-4, batch=500, epochs=210)


def _run_corpus(task: Task) -> Arrays:
    assert task.data is not None
    own = task.settings
    reviews = read_reviews(task.data, own["corpus"], own["whole"])
    recipe = replace(RECIPE, seed=task.seed)
    run = train_tokens(
        reviews.tokens.pieces, recipe, device=device_of("auto"), progress=task.progress
    )
    return of_corpus(run, reviews)


def _claims_corpus(results: Results) -> list[Claim]:
    claims = []
    for key, own in results.items():
        name, loss = CORPORA[key.split("-")[0]], float(own["loss"][-1])
        claims += token_claims(name, own)
        holds = 0.03 <= loss <= 0.5
        claims.append(stated(f"{name}: loss at the end", loss, "0.03 to 0.5", holds))
    return claims


def _pictures_corpus(results: Results) -> list[Picture]:
    pictures = []
    for key, own in results.items():
        name = key.split("-")[0]
        caption = (
            f"{reviews_sentence(name, own)}; model (1), all parameters "
            f"trained for {len(own['loss'])} epochs: loss {own['loss'][-1]:.2g}, accuracy in "
            f"training {own['train'][-1]:.1%}."
        )
        pictures.append(
            Picture(name=key, caption=caption, panels=corpus_clouds(own, CORPORA[name]))
        )
    return pictures


def _corpus_point(name: str, whole: bool = False) -> Point:
    settings = {"corpus": name, "whole": whole, **settings_of(RECIPE)}
    return Point(f"{name}-{'words' if whole else 'layers1'}", settings)


# --- tables ----------------------------------------------------------------------------------

_MOST = 20


def _first(own: Arrays, kind: str) -> NDArray[np.int64]:
    """Return the indices of the top tokens of a table."""
    statistics = statistics_of(own)
    attended = np.where(statistics.count >= FREQUENT, own["with_p"], -np.inf)
    score = statistics.score
    keys = {"most positive": score, "most negative": -score, "most attended": attended}
    return np.argsort(-keys[kind], kind="stable")[:_MOST]


def _tables(results: Results, folder: Path) -> list[Path]:
    lines = []
    for key, own in results.items():
        lines += [f"## {CORPORA[key.split('-')[0]]}", ""]
        kinds = ("most positive", "most negative", "most attended")
        lines += [f"- {kind}: {', '.join(own['words'][_first(own, kind)])}" for kind in kinds] + [
            ""
        ]
    text = "\n".join(lines)
    return [write_whole(own_place(folder, "tokens.md"), lambda stream: stream.write(text.encode()))]


def _claims_table(results: Results) -> list[Claim]:
    claims = []
    for key, own in results.items():
        attended = np.abs(statistics_of(own).difference[_first(own, "most attended")])
        words = f"{CORPORA[key.split('-')[0]]}: mean |posterior difference| of the most attended"
        claims.append(at_least(words, mean_of(attended), 0.5))
    return claims


def _pictures_table(results: Results) -> list[Picture]:
    panels = []
    for key, own in results.items():
        for kind in ("most positive", "most negative"):
            places = _first(own, kind)[:6]
            bars = Series(kind="bar", name="posterior difference", x=np.arange(len(places)),
                          y=statistics_of(own).difference[places])  # fmt: skip
            panels.append(Panel(title=f"{CORPORA[key.split('-')[0]]}, {kind}", series=[bars],
                                axes=("", "posterior difference"),
                                ticks=own["words"][places].tolist()))  # fmt: skip
    caption = "Tokens with the clearest signs, (n₊ − nπ)/√(nπ(1 − π)); more of them in tokens.md."
    return [Picture(name="table", caption=caption, panels=panels, columns=2)]


_SHARED: dict[str, Any] = {"unit": "run", "needs": NEEDS}
EXPERIMENTS = (
    Experiment("D:fig2", "K-level model: embeddings and posterior differences", 1,
               (Point("levels", {"n": _N2, **settings_of(_RECIPE2)}),),
               _run_fig2, _claims_fig2, _pictures_fig2, unit="run"),
    Experiment("D:fig3", "IMDB and Yelp, model (1): embeddings and posterior differences", 1,
               tuple(_corpus_point(name) for name in CORPORA),
               _run_corpus, _claims_corpus, _pictures_corpus, **_SHARED),
    Experiment("D:table", "The most positive, most negative and most attended tokens", 1,
               tuple(_corpus_point(name, whole=True) for name in CORPORA),
               _run_corpus, _claims_table, _pictures_table, files=_tables, **_SHARED),
)  # fmt: skip
