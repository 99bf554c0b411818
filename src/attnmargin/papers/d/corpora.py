"""Paper D: the reviews of figures 1, 3 and 4, and what these figures claim and draw of them."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.embeddings.statistics import TokenStatistics
from attnmargin.papers.engine.claims import Claim, at_least, correlation_of, share_of
from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.engine.review_data import find_reviews, find_vocabulary
from attnmargin.plot.panels import Panel, Series
from attnmargin.text.corpus import Corpus, balanced, between_lengths
from attnmargin.text.tokens.cleaning import Cleaning
from attnmargin.text.tokens.importance import (
    FREQUENT,
    TokenImportance,
    attention_rank,
    sign_agreement,
    token_importance,
)
from attnmargin.text.tokens.training import TokenRecipe, TokenRun

NEEDS = "a folder with imdb.parquet, yelp.parquet (or .csv, .tsv, .jsonl) and vocab.txt"
CORPORA = {"imdb": "IMDB", "yelp": "Yelp"}
# The paper keeps Yelp reviews of so many characters, and about as many as IMDB has per class.
_LENGTHS, _MOST = (1000, 1500), 25_000
# Fewer per class leave too few tokens that occur 200 times; then all lengths are kept.
_ENOUGH = 2000


@final
@dataclass(frozen=True, eq=False)
class Reviews:
    """The tokens of a corpus, and how many reviews per class have the paper's lengths."""

    tokens: TokenImportance
    fitting: tuple[int, int] | None = None  # bad and good ones; None: the paper keeps all lengths


@lru_cache(maxsize=2)
def read_reviews(folder: Path, name: str, whole: bool) -> Reviews:
    """Read all IMDB reviews, or non-neutral Yelp reviews, and clean them as in paper D.

    Args:
        whole: keep whole words instead of word pieces.
    """
    corpus = find_reviews(folder, name, "aclImdb" if name == "imdb" else name)
    fitting = None
    if name == "yelp":
        corpus, fitting = select_lengths(corpus)
    # Yelp has more good reviews; balance, so that neutral tokens have posterior difference zero.
    corpus = balanced(corpus, most=_MOST)
    vocabulary = None if whole else find_vocabulary(folder)
    return Reviews(token_importance(corpus, Cleaning(vocabulary=vocabulary)), fitting)


def select_lengths(corpus: Corpus) -> tuple[Corpus, tuple[int, int]]:
    """Keep reviews of 1,000 to 1,500 characters if each class has enough; count them."""
    part = between_lengths(corpus, *_LENGTHS)
    bad, good = (int((part.labels == label).sum()) for label in (0, 1))
    return (part if min(bad, good) >= _ENOUGH else corpus), (bad, good)


def settings_of(recipe: TokenRecipe) -> dict[str, Any]:
    """Return all settings of a recipe but its seed, which the run provides."""
    return {name: value for name, value in asdict(recipe).items() if name != "seed"}


def trained(run: TokenRun) -> Arrays:
    """Collect the products of a run, and its history."""
    to_p, to_v = run.products
    names = ("loss", "train", "seconds")
    history = {name: np.array([row[name] for row in run.history]) for name in names}
    return {"with_p": to_p, "with_v": to_v, **history}


def of_corpus(run: TokenRun, reviews: Reviews) -> Arrays:
    """Collect the arrays that the claims and pictures of a corpus need."""
    found = reviews.tokens
    return trained(run) | {
        "positive": found.statistics.positive,
        "negative": found.statistics.negative,
        "words": np.array(found.pieces.vocabulary),
        "reviews": np.array(len(found.pieces) + found.empty),
        "fitting": np.array(reviews.fitting or (), dtype=np.int64),
    }


def statistics_of(own: Arrays) -> TokenStatistics:
    """Return the token statistics of the training corpus."""
    return TokenStatistics(own["positive"], own["negative"])


def token_claims(words: str, own: Arrays) -> list[Claim]:
    """Claim both panels: ⟨E, v⟩ has the sign, ⟨E, p⟩ the order of the posterior difference."""
    known = statistics_of(own)
    rank, count = attention_rank(known, own["with_p"])
    order = f"rank correlation of ⟨E, p⟩ with |posterior difference|, tokens seen {FREQUENT} times"
    same = share_of(sign_agreement(known, own["with_v"]))
    return [
        at_least(f"{words}: sign agreement of tokens", same, 0.95),
        at_least(f"{words}: {order}", correlation_of(rank, count), 0.5),
    ]


def reviews_sentence(name: str, own: Arrays) -> str:
    """Say which reviews were used, and why not those of the paper's lengths."""
    words = f"{CORPORA[name]}: {int(own['reviews']):,} reviews"
    least, most = _LENGTHS
    if not own["fitting"].size:
        return f"{words}, {len(own['words']):,} tokens after cleaning"
    bad, good = own["fitting"].tolist()
    if min(bad, good) >= _ENOUGH:
        kept = f"of {least:,} to {most:,} characters"
    else:
        kept = (
            f"of all lengths (of the paper's {least:,} to {most:,} characters there are only "
            f"{bad:,} bad and {good:,} good ones)"
        )
    return f"{words} {kept}, {len(own['words']):,} tokens after cleaning"


def clouds(x: NDArray[Any], own: Arrays, title: str, groups: dict[str, Any]) -> list[Panel]:
    """Draw the two pictures of the paper."""
    panels = []
    for key, name in (("with_p", "attention (⟨E, p⟩)"), ("with_v", "class (⟨E, v⟩)")):
        series = [
            Series(kind="points", name=word, x=x[places], y=own[key][places], marker=".")
            for word, places in groups.items()
        ]
        panels.append(Panel(title=title, axes=("posterior difference", name), series=series))
    return panels


def corpus_clouds(own: Arrays, title: str) -> list[Panel]:
    """Draw the two pictures of the paper, for frequent and for rare tokens."""
    statistics = statistics_of(own)
    often = statistics.count >= FREQUENT
    groups = {f"seen ≥ {FREQUENT} times": often, "rarer": ~often}
    return clouds(statistics.difference, own, title, groups)
