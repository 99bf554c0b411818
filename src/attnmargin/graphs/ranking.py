"""The ranks of the tokens of one last token, if some choices are noise."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from attnmargin.base.ragged import Ids
from attnmargin.graphs.offers import Floats, Offers

# Equals have shares of comparable size: the prior of a share is Beta of this and this.
_ALIKE = 2.0


@final
@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks, 0 the best; tokens of one rank win over each other more often than by noise."""

    rank: Ids  # (N,)
    right: NDArray[np.bool_]  # (n,) whether the label has the best rank of its sample
    exposed: float  # expected number of wrong labels per unit of noise
    evidence: Floats  # log Bayes factors: each token as an equal of each rank that it meets
    parameters: int  # free shares inside ranks

    @property
    def wrong(self) -> int:
        """Number of samples whose label does not have the best rank."""
        return int((~self.right).sum())


def ranking(offers: Offers, noise: float, least: float) -> Ranking:
    """Rank tokens from the top: one that nobody beats comes first, with its equals.

    The samples that offer tokens of this rank are then left out, for they say nothing about the
    tokens below. A token joins the rank if it was chosen over it so often that
    an equal share explains that better than noise does.

    Args:
        noise: ε, the share of samples whose label is a random token of the sequence.
        least: log Bayes factor above which a token is an equal.
    """
    N = len(offers.tokens)
    live, left = offers.width > 1, np.ones(N, dtype=bool)
    rank, right = np.full(N, N), np.ones(offers.n, dtype=bool)
    wins = _wins(offers, live)
    evidence: list[Floats] = []
    exposed, parameters, number = 0.0, 0, 0
    while live.any():
        top = _first(wins, left)
        top, hit, own = _equals(offers, top, left & ~top, live, noise, least)
        evidence.append(own)
        rank[top], number = number, number + 1
        right[hit] = top[offers.chosen[hit]]
        inside = hit[offers.row]
        exposed += float(offers.share[inside & ~top[offers.node]].sum())
        parameters += int(top.sum()) - 1
        wins -= _wins(offers, hit)
        live, left = live & ~hit, left & ~top
    rank[left] = number + np.arange(int(left.sum()))
    return Ranking(rank, right, exposed, np.concatenate([np.zeros(0), *evidence]), parameters)


def _wins(offers: Offers, some: NDArray[np.bool_]) -> Ids:
    """Count how often each token was chosen over each other one in some samples, ``(N, N)``."""
    N, inside = len(offers.tokens), some[offers.row]
    keys = offers.chosen[offers.row[inside]] * N + offers.node[inside]
    found: Ids = np.bincount(keys, minlength=N * N).reshape(N, N)
    return found


def _first(wins: Ids, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the token that is beaten by the smallest number of choices, or by nobody."""
    beaten = (wins.T - wins)[:, left].max(1)
    total = wins.sum(1) - wins.sum(0)
    order = np.lexsort((-total, beaten))
    top = np.zeros(len(wins), dtype=bool)
    top[order[left[order]][0]] = True
    return top


def _equals(
    offers: Offers,
    top: NDArray[np.bool_],
    others: NDArray[np.bool_],
    live: NDArray[np.bool_],
    noise: float,
    least: float,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Let tokens join the rank; also mark the samples that offer it, and return the evidence."""
    joined: list[Floats] = []
    while True:
        hit = np.zeros(offers.n, dtype=bool)
        hit[offers.row[top[offers.node]]] = True
        hit &= live
        compared, evidence = _evidence(offers, top, hit, noise)
        compared &= others & ~top
        equal = compared & (evidence > least)
        if not equal.any():
            return top, hit, np.concatenate([*joined, evidence[compared]])
        joined.append(evidence[equal])
        top = top | equal


def _evidence(
    offers: Offers, top: NDArray[np.bool_], hit: NDArray[np.bool_], noise: float
) -> tuple[NDArray[np.bool_], Floats]:
    """Compute log Bayes factors for tokens as equals of the rank; mark those compared with it.

    Of m choices that fell on the token or on the rank, u fell on the token. Noise makes that a
    binomial law of known probability; an equal has a share with the prior ``Beta(2, 2)``.
    """
    N, inside = len(top), hit[offers.row]
    of_top = np.bincount(offers.row, offers.share * top[offers.node], minlength=offers.n)
    won = (hit & top[offers.chosen])[offers.row]
    own = offers.node[inside]
    u = np.bincount(offers.chosen[hit], minlength=N)
    m = u + np.bincount(offers.node[inside & won], minlength=N)
    share = offers.share[inside]
    chance = noise * share / (1.0 - noise + noise * (of_top[offers.row[inside]] + share))
    seen = np.bincount(own, minlength=N)
    p = np.bincount(own, chance, minlength=N) / np.maximum(seen, 1)
    equal = betaln(u + _ALIKE, m - u + _ALIKE) - betaln(_ALIKE, _ALIKE)
    return seen > 0, equal - xlogy(u, p) - xlog1py(m - u, -p)
