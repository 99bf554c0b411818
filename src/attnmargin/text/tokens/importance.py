"""Decisive tokens of a labelled corpus: statistics, a trained model, and their agreement."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised, few_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.embeddings.statistics import TokenStatistics
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.cleaning import Cleaned, Cleaning, Step, clean_corpus
from attnmargin.text.tokens.counts import TextCounts, count_texts
from attnmargin.text.tokens.evidence import LEVEL, Evidence
from attnmargin.text.tokens.forms import Forms
from attnmargin.text.tokens.training import TokenRun

# Agreement is measured on tokens with at least FREQUENT occurrences and a posterior difference
# above DECISIVE. In small corpora, one occurrence in RARE texts suffices, but at least FEW.
FREQUENT, DECISIVE, RARE, FEW = 200, 0.2, 125, 20


@final
@dataclass(frozen=True, eq=False, repr=False)
class TokenImportance(Summarised):
    """Tokens of a corpus with their statistics, and a trained model if there is one."""

    pieces: Pieces
    statistics: TokenStatistics
    classes: tuple[str, str]
    steps: list[Step]
    evidence: Evidence
    forms: Forms
    empty: int = 0  # texts without any token left
    run: TokenRun | None = None

    def summary(self) -> dict[str, str]:
        """Return the size, the classes and the top tokens of each class, by name."""
        words = {
            f"for {self.classes[k]}": few_words(
                self.forms.shown[s] for s in self.ranked(name, 3, evidence=True)
            )
            for k, name in enumerate(("negative", "positive"))
        }
        trained = "no" if self.run is None else f"{len(self.run.history)} epochs"
        found = f"{int(self.evidence.found.sum()):,} of {len(self.pieces.vocabulary):,} tokens"
        return {"texts": f"{len(self.pieces):,}", "evidence": found, **words, "trained": trained}

    def ranked(self, name: str, most: int, *, evidence: bool = False) -> NDArray[np.int64]:
        """Rank tokens, and return the indices of the most "positive", "negative" or "attended".

        Only tokens that occur at least once in 125 texts (200 times in 25,000) rank as attended:
        what a model does with rare tokens is chance.

        Args:
            evidence: of the positive and negative tokens, return only those that are evidence.
        """
        if name == "attended":
            if self.run is None:
                raise InputError("name", "'attended' without a trained model", "a trained model")
            often = self.statistics.count >= len(self.pieces) / RARE
            keys = np.where(often, self.run.products[0], -np.inf)
        elif name in ("positive", "negative"):
            keys = self.statistics.score if name == "positive" else -self.statistics.score
            side = 1 if name == "positive" else -1
            keep = self.evidence.found & (self.evidence.side == side) if evidence else True
            keys = np.where((keys > 0.0) & keep, keys, -np.inf)
        else:
            raise InputError("name", repr(name), "'positive', 'negative' or 'attended'")
        first = np.argsort(-keys, kind="stable")[:most]
        return first[np.isfinite(keys[first])]

    def row(self, s: int) -> dict[str, Any]:
        """Describe one token, ready for JSON."""
        own, texts = self.statistics, self.evidence.counts.texts[s]
        found: dict[str, Any] = {
            "token": self.pieces.vocabulary[s],
            "word": self.forms.shown[s],
            "forms": self.forms.words[s],
            "texts": int(texts.sum()),
            "texts positive": int(texts[1]),
            "texts negative": int(texts[0]),
            "count": int(own.count[s]),
            "positive": int(own.positive[s]),
            "negative": int(own.negative[s]),
            "alpha": float(own.alpha[s]),
            "difference": float(own.difference[s]),
            "kind": str(own.kind[s]),
            "alpha interval": [float(end[s]) for end in self.evidence.alpha],
            "difference interval": [float(end[s]) for end in self.evidence.difference],
            "p": float(self.evidence.p[s]),
            "adjusted p": float(self.evidence.adjusted[s]),
            "evidence": bool(self.evidence.found[s]),
        }
        if self.run is not None:
            to_p, to_v = self.run.products
            found |= {"with p": float(to_p[s]), "with v": float(to_v[s])}
        return found

    def agreement(self, least: int | None = None, difference: float = DECISIVE) -> dict[str, Any]:
        """Measure how far the model agrees with the statistics on frequent decisive tokens.

        Tokens are frequent if seen at least 200 times; in corpora of fewer than 25,000 texts, once
        in 125 texts, but at least 20 times. Compares the signs of ⟨E_s, v⟩ and of the posterior
        difference. Spearman's rank correlation compares ⟨E_s, v⟩ with the difference, and ⟨E_s, p⟩
        with its absolute value.
        """
        if self.run is None:
            raise InputError("run", "none", "a trained model")
        from scipy.stats import spearmanr

        least = frequent_from(len(self.pieces), least)
        to_p, to_v = self.run.products
        own = self.statistics
        frequent = own.count >= least
        same = sign_agreement(own, to_v, least, difference)
        with_v = spearmanr(to_v[frequent], own.difference[frequent])[0]
        with_p, _ = attention_rank(own, to_p, least)
        return {
            "seen at least": least,
            "difference above": difference,
            "tokens": len(same),
            "sign agreement": float(same.mean()) if len(same) else None,
            "rank correlation with v": _number(with_v),
            "rank correlation with p": _number(with_p),
            "loss": self.run.history[-1]["loss"],
            "accuracy": self.run.history[-1]["train"],
        }


def frequent_from(texts: int, least: int | None = None) -> int:
    """Return the occurrences from which a token is frequent: as given, or by the texts."""
    return min(FREQUENT, max(FEW, texts // RARE)) if least is None else least


def sign_agreement(
    statistics: TokenStatistics,
    to_v: NDArray[Any],
    least: int = FREQUENT,
    difference: float = DECISIVE,
) -> NDArray[np.bool_]:
    """Test if ⟨E_s, v⟩ has the sign of the posterior difference, for frequent decisive tokens."""
    x = np.nan_to_num(statistics.difference)
    decisive = (statistics.count >= least) & (np.abs(x) > difference)
    return np.sign(to_v[decisive]) == np.sign(x[decisive])


def attention_rank(
    statistics: TokenStatistics, to_p: NDArray[Any], least: int = FREQUENT
) -> tuple[float, int]:
    """Correlate the ranks of ⟨E_s, p⟩ and |posterior difference| of frequent tokens; count them."""
    from scipy.stats import spearmanr

    frequent = statistics.count >= least
    rank = spearmanr(to_p[frequent], np.abs(statistics.difference[frequent]))[0]
    return float(rank), int(frequent.sum())


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def token_importance(
    corpus: Corpus,
    cleaning: Cleaning | None = None,
    *,
    level: float = LEVEL,
    progress: Progress | None = None,
) -> TokenImportance:
    """Compute the statistics of the tokens of a corpus of two classes.

    To compare, train a model on ``.pieces`` and insert it with :func:`dataclasses.replace`.

    Args:
        level: share of false discoveries among the tokens that are evidence; intervals have the
            level ``1 − level``.
        progress: called with the number of texts that are split into words.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> texts = ["a superb film", "superb acting", "a dull film", "dull acting"] * 5
        >>> corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0] * 5), ("neg", "pos"))
        >>> found = am.text.token_importance(corpus, am.text.Cleaning(least=1))
        >>> [found.row(s)["word"] for s in found.ranked("positive", 1, evidence=True)]
        ['superb']
    """
    if len(corpus.classes) != 2:
        got = f"none for {len(corpus.classes)} classes ({', '.join(corpus.classes[:6])})"
        needs = "the one to compare with the rest, or only two classes: drop leaves out the others"
        raise InputError("positive", got, needs)
    return class_importance(corpus, cleaning, level=level, progress=progress)[-1]


def class_importance(
    corpus: Corpus,
    cleaning: Cleaning | None = None,
    *,
    level: float = LEVEL,
    progress: Progress | None = None,
) -> list[TokenImportance]:
    """Compare every class of a corpus with the rest; of two classes, only the positive one.

    Example:
        >>> import attnmargin as am
        >>> planted = am.text.planted_corpus(600, words=200, deciding=6, shares=[0.2, 0.3, 0.5])
        >>> [found.classes for found in am.text.class_importance(planted.corpus)]
        [('not 1', '1'), ('not 2', '2'), ('not 3', '3')]
    """
    found = clean_corpus(corpus, cleaning, progress)
    full = np.flatnonzero(found.pieces.lengths > 0)
    _check_left(corpus, found, full, cleaning or Cleaning())
    empty = len(found.pieces) - len(full)
    pieces = found.pieces.part(full) if empty else found.pieces
    counts = count_texts(pieces, len(corpus.classes))
    return [
        _against(
            corpus.against(name).classes, k, replace(found, pieces=pieces), counts, empty, level
        )
        for k, name in enumerate(corpus.classes)
        if len(corpus.classes) > 2 or k == 1
    ]


def _against(
    classes: tuple[str, ...], k: int, found: Cleaned, counts: TextCounts, empty: int, level: float
) -> TokenImportance:
    """Compare class k with the rest."""
    pieces, own = found.pieces, counts.against(k)
    labels = (pieces.labels == k).astype(np.int64)
    return TokenImportance(
        pieces=Pieces(pieces.ids, pieces.start, labels, pieces.vocabulary),
        statistics=TokenStatistics(own.occurrences[:, 1], own.occurrences[:, 0]),
        classes=(classes[0], classes[1]), steps=found.steps, evidence=Evidence(own, level),
        forms=found.forms, empty=empty,
    )  # fmt: skip


def _check_left(
    corpus: Corpus, found: Cleaned, full: NDArray[np.int64], cleaning: Cleaning
) -> None:
    """Raise InputError if a class has no token left."""
    left = np.bincount(found.pieces.labels[full], minlength=len(corpus.classes))
    if left.all():
        return
    name = corpus.classes[int(np.argmin(left > 0))]
    if cleaning.least > 1:
        got = f"{cleaning.least}, which leaves no token in texts of class {name!r}"
        raise InputError("least", got, "a smaller number, or more texts")
    raise InputError("file", f"no token in texts of class {name!r}", "texts with words that stay")
