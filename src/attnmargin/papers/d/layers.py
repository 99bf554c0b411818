"""Paper D, figures 1 and 4: the two-layer model on reviews, and sign agreement along the loss."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from attnmargin.base.device import device_of
from attnmargin.base.errors import InaccurateError
from attnmargin.papers.d.corpora import (
    CORPORA,
    NEEDS,
    corpus_clouds,
    of_corpus,
    read_reviews,
    reviews_sentence,
    settings_of,
    statistics_of,
    token_claims,
)
from attnmargin.papers.engine.claims import Claim, at_most, share_of, stated
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.importance import TokenImportance, sign_agreement
from attnmargin.text.tokens.training import TokenRecipe, TokenRun, train_tokens

# Early: small steps in large batches, until the loss is about that of model (1).
# Long: until every review is memorised, and past both drops of the paper's schedule.
# Paper: its rate, its start, and LayerNorm with scale and shift.
_EARLY = TokenRecipe(layers=2, d=128, lr=1e-3, batch=1000, parts=50, decay=1e-8)
_LONG = TokenRecipe(layers=2, d=64, lr=4e-3, batch=128, parts=16, decay=1e-8)
RECIPES = {
    "imdb-early": replace(_EARLY, epochs=3),
    "imdb-long": replace(_LONG, epochs=210, parts=1),
    "yelp-early": replace(_EARLY, epochs=12),
    "yelp-long": replace(_LONG, epochs=210),
    "yelp-paper": replace(_LONG, lr=1e-2, epochs=210, affine=True, start="paper"),
}
RIDGES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
_WORDS = {
    "early": "two layers, stopped early",
    "long": "two layers, trained on",
    "paper": "two layers, the paper's start",
    "linear": "logistic regression",
}
# Logistic regression counts as solved if no gradient entry exceeds this.
_SMALL = 1e-6


def _run(task: Task) -> Arrays:
    assert task.data is not None
    reviews = read_reviews(task.data, task.settings["corpus"], whole=False)
    found = reviews.tokens
    if task.settings["kind"] == "linear":
        return _ridge(found, task)
    recipe = replace(
        RECIPES[f"{task.settings['corpus']}-{task.settings['kind']}"], seed=task.seed
    )  # fmt: skip
    share: list[float] = []

    def look(run: TokenRun) -> None:
        share.append(float(sign_agreement(found.statistics, run.products[1]).mean()))

    run = train_tokens(
        found.pieces, recipe, device=device_of("auto"), progress=task.progress, look=look
    )  # fmt: skip
    return of_corpus(run, reviews) | {"agreement": np.array(share)}


def _ridge(found: TokenImportance, task: Task) -> Arrays:
    """Sweep the weight of ‖w‖²/2, w_s = ⟨E_s, v⟩, in model (1) with p = 0; loss and agreement."""
    losses, same = [], []
    w = np.zeros(len(found.pieces.vocabulary))
    for k, ridge in enumerate(RIDGES):
        w, loss = logistic_regression(found.pieces, ridge, w)
        losses.append(loss)
        same.append(sign_agreement(found.statistics, w))
        task.progress(k + 1, len(RIDGES))
    own = {"ridge": np.array(RIDGES), "loss": np.array(losses), "same": np.array(same)}
    return own | {"agreement": own["same"].mean(1)}


def logistic_regression(
    pieces: Pieces, ridge: float, start: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Minimise ``mean log(1 + exp(−y f)) + ridge ‖w‖²/2`` for ``f = Σ_s share_s w_s``; w and loss.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> from attnmargin.papers.d.layers import logistic_regression
        >>> ids, start, labels = np.array([0, 1]), np.arange(3), np.array([1, 0])
        >>> pieces = am.text.Pieces(ids, start, labels, ["good", "bad"])
        >>> w, loss = logistic_regression(pieces, 0.1, np.zeros(2))
        >>> w.round(3), round(loss, 3)
        (array([ 1.178, -1.178]), 0.269)
    """
    S, y = len(pieces.vocabulary), 2.0 * pieces.labels - 1.0
    shares = np.repeat(1.0 / pieces.lengths, pieces.lengths)
    X = csr_matrix((shares, pieces.ids, pieces.start), shape=(len(y), S), copy=True)
    X.sum_duplicates()  # in place; X is a copy, so the pieces stay intact

    def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = y * (X @ w)
        pull = -y * np.exp(-np.logaddexp(0.0, margin)) / len(y)
        total = np.logaddexp(0.0, -margin).mean() + ridge * (w @ w) / 2
        return float(total), X.T @ pull + ridge * w

    # Shares make gradients small, hence the tight tolerances.
    options = {"maxiter": 3000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    w, left = found.x, float(np.abs(found.jac).max())
    # The line search may give up at the last digits; that is not a failure.
    if not found.success and left > _SMALL:
        words = f"logistic regression with ridge {ridge:g} has a gradient of {left:.2g} left"
        raise InaccurateError(f"{words} ({found.message})")
    return w, float(np.logaddexp(0.0, -y * (X @ w)).mean())


# --- what is claimed and drawn ---------------------------------------------------------------


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key, own in results.items():
        name, kind = key.split("-")
        words, loss = f"{CORPORA[name]}, {_WORDS[kind]}", float(own["loss"][-1])
        if kind == "linear":
            least = int(np.argmin(own["loss"]))
            words += f", at its smallest loss ({own['loss'][least]:.2g}): sign agreement"
            claims.append(at_most(words, share_of(own["same"][least]), 0.95))
            continue
        claims += token_claims(f"{words} (loss {loss:.2g})", own)
        if kind != "early":
            holds = 1e-6 <= loss <= 1e-4
            claims.append(
                stated(f"{words}: loss of the last epoch", loss, "1e-06 to 0.0001", holds)
            )
    return claims


def _pictures(results: Results) -> list[Picture]:
    pictures = [_picture(key, own) for key, own in results.items() if "with_p" in own]
    return [*pictures, _signs(results)]


def _picture(key: str, own: Arrays) -> Picture:
    name, kind = key.split("-")
    recipe = RECIPES[key]
    norm = ", LayerNorm with scale and shift, p and v as long as in model (1)"
    model = f"model (36), d = {recipe.d}{norm if recipe.affine else ''}"
    caption = (
        f"{reviews_sentence(name, own)}; {model}, all parameters trained for "
        f"{len(own['loss'])} epochs: loss {own['loss'][-1]:.2g}, accuracy in training "
        f"{own['train'][-1]:.1%}, sign agreement {own['agreement'][-1]:.1%}."
    )
    return Picture(
        name=key, caption=caption, panels=corpus_clouds(own, f"{CORPORA[name]}, {_WORDS[kind]}")
    )


def _signs(results: Results) -> Picture:
    """Draw the sign agreement along the loss."""
    series = [
        Series(kind="line", name=_WORDS[key.split("-")[1]], x=own["loss"], y=100 * own["agreement"],
               marker=".")
        for key, own in results.items()
    ]  # fmt: skip
    series.append(Series(kind="level", name="95 %", x=np.zeros(1), y=np.array(95.0)))
    name = next(iter(results)).split("-")[0]
    tokens = len(sign_agreement(statistics_of(results[f"{name}-long"]),
                                results[f"{name}-long"]["with_v"]))  # fmt: skip
    caption = (
        f"{CORPORA[name]}: share of {tokens} frequent decisive tokens whose ⟨E, v⟩ has the sign "
        "of the posterior difference. Two-layer model: one mark per epoch, the loss falls to the "
        "left. Logistic regression on shares of tokens, which is model (1) with p = 0: one mark "
        f"per ridge, {RIDGES[0]:g} to {RIDGES[-1]:g}."
    )
    panel = Panel(title=f"{CORPORA[name]}: signs along the loss", series=series,
                  axes=("loss (of an epoch: its mean)", "sign agreement, %"),
                  logarithmic=(True, False))  # fmt: skip
    return Picture(name=f"{name}-signs", caption=caption, panels=[panel])


def _points(name: str) -> tuple[Point, ...]:
    kinds = [kind for kind in _WORDS if f"{name}-{kind}" in RECIPES]
    settings = {kind: settings_of(RECIPES[f"{name}-{kind}"]) for kind in kinds}
    settings["linear"] = {"ridges": RIDGES}
    return tuple(
        Point(f"{name}-{kind}", {"corpus": name, "kind": kind, **own})
        for kind, own in settings.items()
    )


EXPERIMENTS = tuple(
    Experiment(figure, f"{CORPORA[name]}, two-layer model: embeddings and posterior differences",
               1, _points(name), _run, _claims, _pictures, unit="run", needs=NEEDS)
    for figure, name in (("D:fig1", "imdb"), ("D:fig4", "yelp"))
)  # fmt: skip
