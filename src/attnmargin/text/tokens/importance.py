"""Decisive tokens of a labelled corpus: statistics, a trained model, and their agreement."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised, few_words
from attnmargin.base.errors import InputError
from attnmargin.embeddings.statistics import TokenStatistics, count_tokens
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.cleaning import Cleaning, Step, clean_tokens
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
    classes: tuple[str, ...]
    steps: list[Step]
    empty: int = 0  # texts without any token left
    run: TokenRun | None = None

    def summary(self) -> dict[str, str]:
        """Return the size, the classes and the top tokens of each class, by name."""
        words = {
            f"for {self.classes[k]}": few_words(
                self.pieces.vocabulary[s] for s in self.ranked(name, 3)
            )
            for k, name in enumerate(("negative", "positive"))
        }
        trained = "no" if self.run is None else f"{len(self.run.history)} epochs"
        return {"texts": f"{len(self.pieces):,}", **words, "trained": trained}

    def ranked(self, name: str, most: int) -> NDArray[np.int64]:
        """Rank tokens, and return the indices of the most "positive", "negative" or "attended".

        Only tokens that occur at least once in 125 texts (200 times in 25,000) rank as attended:
        what a model does with rare tokens is chance.
        """
        if name == "attended":
            if self.run is None:
                raise InputError("name", "'attended' without a trained model", "a trained model")
            often = self.statistics.count >= len(self.pieces) / RARE
            keys = np.where(often, self.run.products[0], -np.inf)
        elif name in ("positive", "negative"):
            keys = self.statistics.score if name == "positive" else -self.statistics.score
            keys = np.where(keys > 0.0, keys, -np.inf)
        else:
            raise InputError("name", repr(name), "'positive', 'negative' or 'attended'")
        first = np.argsort(-keys, kind="stable")[:most]
        return first[np.isfinite(keys[first])]

    def row(self, s: int) -> dict[str, Any]:
        """Describe one token, ready for JSON."""
        own = self.statistics
        found: dict[str, Any] = {
            "token": self.pieces.vocabulary[s],
            "count": int(own.count[s]),
            "positive": int(own.positive[s]),
            "negative": int(own.negative[s]),
            "alpha": float(own.alpha[s]),
            "difference": float(own.difference[s]),
            "kind": str(own.kind[s]),
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

        if least is None:
            least = min(FREQUENT, max(FEW, len(self.pieces) // RARE))
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


def token_importance(corpus: Corpus, cleaning: Cleaning | None = None) -> TokenImportance:
    """Compute the statistics of the tokens of a corpus.

    To compare, train a model on ``.pieces`` and insert it with :func:`dataclasses.replace`.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> texts = ["a superb film", "superb acting", "a dull film", "dull acting"]
        >>> corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0]), ("neg", "pos"))
        >>> found = am.text.token_importance(corpus, am.text.Cleaning(least=1))
        >>> [found.row(s)["token"] for s in found.ranked("positive", 1)]
        ['superb']
    """
    if len(corpus.classes) != 2:
        got = f"none for {len(corpus.classes)} classes ({', '.join(corpus.classes[:6])})"
        needs = "the one to compare with the rest, or only two classes: drop leaves out the others"
        raise InputError("positive", got, needs)
    pieces, steps = clean_tokens(corpus, cleaning)
    full = np.flatnonzero(pieces.lengths > 0)
    empty = len(pieces) - len(full)
    if not len(full):
        raise InputError("file", "texts without any token left", "more texts, or fewer steps")
    if empty:
        pieces = pieces.part(full)
    missing = [corpus.classes[y] for y in (0, 1) if y not in pieces.labels]
    if missing:
        got = f"no token left in texts of class {missing[0]!r}"
        raise InputError("file", got, "more texts, or fewer steps")
    signs = np.repeat(2 * pieces.labels - 1, pieces.lengths)
    statistics = count_tokens(pieces.ids, signs, len(pieces.vocabulary))
    return TokenImportance(pieces, statistics, corpus.classes, steps, empty)
