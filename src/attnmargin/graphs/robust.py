"""Token-priority graphs of data in which some choices are random."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import expit, logit

from attnmargin.base.errors import InputError
from attnmargin.base.ragged import Ids
from attnmargin.graphs.collection import TokenGraphs, keys_of, token_graphs
from attnmargin.graphs.noise import Noise
from attnmargin.graphs.offers import Floats, Offers, offers_of
from attnmargin.graphs.ranking import Ranking, ranking
from attnmargin.graphs.samples import Samples

# Graphs with fewer samples per token, or more tokens, say too little about noise, or too slowly.
_SAMPLES, _TOKENS = 2, 400
# Noise is at most a third: more could not be told from a component of equal tokens.
_MOST = 1.0 / 3.0
# Passes over the data, and steps that estimate how many comparisons are of equals.
_PASSES, _STEPS = 12, 50
_STARTS = (0.01, 0.03, 0.1, 0.2, 0.3)
# How much better noise must explain the data than components do, in units of BIC.
_CLEAR = 10.0
# Share of false ones among the tokens that are found equal.
_LEVEL = 0.05


def robust_graphs(
    sequences: Any,
    labels: Any,
    vocabulary: Any = None,
    *,
    unrealisable: str = "drop",
    level: float = _LEVEL,
) -> TokenGraphs:
    """Build graphs of choices of which some are noise: random tokens of their sequence.

    ``ε`` is the share of such choices, estimated together with the graphs. A choice against the
    order of two tokens makes them equal if such choices are significantly more frequent than
    noise makes them, with a share ``level`` of false ones among them (Benjamini and Hochberg);
    else it is noise, is left out, and counted in ``graphs.noise``. If the data are explained as
    well without noise (difference of BIC below 10), the graphs are those of
    :func:`token_graphs`, bit for bit. So are graphs with less than two samples per token, or more
    than 400 tokens.

    Args:
        sequences, labels, vocabulary, unrealisable: as in :func:`token_graphs`.
        level: share of false equalities among all that are found.

    Returns:
        :class:`TokenGraphs` whose ``noise`` is a :class:`Noise`, or None if there is none.

    Example:
        >>> import attnmargin as am
        >>> data = am.graphs.planted_choices(3000, noise=0.1)
        >>> graphs = am.graphs.robust_graphs(data.sequences, data.labels, data.vocabulary)
        >>> bool(abs(graphs.noise.total - 0.1) < 0.02)
        True
    """
    if not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise InputError("level", repr(level), "a share above 0 and below 1")
    strict = token_graphs(sequences, labels, vocabulary, unrealisable=unrealisable)
    return without_noise(strict, level)


def without_noise(strict: TokenGraphs, level: float = _LEVEL) -> TokenGraphs:
    """Remove noise from the graphs of :func:`token_graphs`, which must have their samples."""
    assert strict.samples is not None
    parts = _Parts.of(strict)
    if not parts.offers:
        return strict
    gain, fit = _best(parts, strict, level)
    if gain < _CLEAR:
        return strict
    found = fit.ranked
    right = np.ones(strict.samples.n, dtype=bool)
    for places, own in zip(parts.places, found, strict=True):
        right[places] = own.right
    wrong = np.array([own.wrong for own in found])
    exposed = np.array([own.exposed for own in found])
    measured = Noise(parts.last, wrong, exposed, fit.noise, int((~right).sum()))
    kept = strict.samples[right]
    keys = keys_of(kept, strict.last, strict.token)
    return TokenGraphs(
        keys, strict.vocabulary, kept, strict.unrealisable, strict.dropped, noise=measured
    )


@final
@dataclass(frozen=True, eq=False)
class _Parts:
    """The last tokens that can show noise, and their samples."""

    last: Ids
    places: list[Ids]  # indices of samples
    offers: list[Offers]

    @classmethod
    def of(cls, graphs: TokenGraphs) -> "_Parts":
        assert graphs.samples is not None
        samples: Samples = graphs.samples
        tokens = np.bincount(graphs.last, minlength=graphs.K)
        count = np.bincount(samples.last, minlength=graphs.K)
        fits = (count >= _SAMPLES * tokens) & (tokens > 1) & (tokens <= _TOKENS)
        some = np.flatnonzero(fits[samples.last] & samples.realisable)
        order = some[np.argsort(samples.last[some], kind="stable")]
        last, start = np.unique(samples.last[order], return_index=True)
        places = np.split(order, start[1:]) if len(order) else []
        return cls(last, places, [offers_of(samples[own]) for own in places])


def _best(parts: _Parts, strict: TokenGraphs, level: float) -> tuple[float, "_Fit"]:
    """Return the fit whose BIC is smallest, and how much smaller it is than without noise.

    Fits start from several shares of noise, the same for all last tokens. The best one goes on
    with a share for each.
    """
    plain = _Plain.of(parts, strict)
    fits = [_fixed_point(parts, np.full(len(parts.last), e), level, _pooled) for e in _STARTS]
    best = max(fits, key=lambda fit: plain.gain(parts, fit))
    own = _fixed_point(parts, best.noise, level, _shrunk)
    return max(((plain.gain(parts, fit), fit) for fit in (best, own)), key=lambda pair: pair[0])


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    """Ranks of all tokens, and the share of noise of each last token."""

    ranked: list[Ranking]
    noise: Floats


def _fixed_point(
    parts: _Parts, noise: Floats, level: float, estimate: Callable[[list[Ranking]], Floats]
) -> _Fit:
    """Rank all tokens and estimate noise in turn."""
    limit = 0.0
    for _ in range(_PASSES):
        ranked = [ranking(own, e, limit) for own, e in zip(parts.offers, noise, strict=True)]
        before, noise, limit = noise, estimate(ranked), _limit(ranked, level)
        if np.abs(noise - before).max() < 1e-9:
            break
    return _Fit(ranked, noise)


def _counts(ranked: list[Ranking]) -> tuple[Floats, Floats, float]:
    """Count contradictions, and how many there would be if all was noise; also their ratio."""
    wrong = np.array([own.wrong for own in ranked], dtype=float)
    exposed = np.maximum([own.exposed for own in ranked], 1e-9)
    return wrong, exposed, min(float(wrong.sum() / exposed.sum()), _MOST)


def _pooled(ranked: list[Ranking]) -> Floats:
    """Estimate one share of noise for all last tokens."""
    return np.full(len(ranked), _counts(ranked)[2])


def _shrunk(ranked: list[Ranking]) -> Floats:
    """Estimate the noise of every last token, drawn towards that of all.

    The prior is as strong as the last tokens are alike: it counts as so many choices, from the
    variance of ``wrong/exposed`` beyond that of counting.
    """
    wrong, exposed, total = _counts(ranked)
    counting = np.maximum(total * (1.0 - total) * exposed, 1e-300)
    beyond = float(((wrong - total * exposed) ** 2 / counting - 1.0).sum())
    if beyond <= 0.0:
        return np.full(len(ranked), total)
    alike = exposed.sum() / beyond
    return np.minimum((wrong + alike * total) / (exposed + alike), _MOST)


def _limit(found: list[Ranking], level: float) -> float:
    """Find the least evidence for equals, so that a share ``level`` of them is expected false.

    The share π of equals among all comparisons is the likeliest one.
    """
    evidence = np.sort(np.concatenate([own.evidence for own in found]))[::-1]
    if len(evidence) == 0:
        return 0.0
    share = 0.5
    for _ in range(_STEPS):
        equal = expit(evidence + logit(share))
        share = float(np.clip(equal.mean(), 1e-3, 0.5))
    false = np.cumsum(1.0 - equal) / np.arange(1, len(equal) + 1)
    many = int(((false <= level) & (equal > 0.5)).sum())
    return float(evidence[many - 1]) - 1e-9 if many else np.inf


@final
@dataclass(frozen=True, eq=False)
class _Plain:
    """The graphs without noise: log-likelihood and free shares of each last token."""

    likelihood: list[float]
    free: list[int]

    @classmethod
    def of(cls, parts: _Parts, strict: TokenGraphs) -> "_Plain":
        likelihood, free = [], []
        for own, last in zip(parts.offers, parts.last, strict=True):
            graph = strict.at(int(last))
            assert graph is not None
            likelihood.append(own.likelihood(graph.components_of(own.tokens), 0.0))
            free.append(len(graph.tokens) - len(graph.layer))
        return cls(likelihood, free)

    def gain(self, parts: _Parts, fit: _Fit) -> float:
        """Compute how much smaller BIC is with noise than without."""
        price = np.log(max(sum(own.n for own in parts.offers), 2))
        gain = -price
        for own, ranked, e, plain, free in zip(
            parts.offers, fit.ranked, fit.noise, self.likelihood, self.free, strict=True
        ):
            gain += 2.0 * (own.likelihood(ranked.rank, e) - plain)
            gain += price * (free - ranked.parameters)
        return float(gain)
