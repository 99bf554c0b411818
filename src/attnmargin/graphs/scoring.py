"""How well the automaton predicts sequences that it has not seen, beside simple rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import InputError
from attnmargin.base.intervals import share_interval
from attnmargin.base.ragged import row_of
from attnmargin.base.seeds import seed_of
from attnmargin.base.words import counted
from attnmargin.graphs.automaton import Automaton
from attnmargin.graphs.collection import TokenGraphs, keys_of
from attnmargin.graphs.samples import Samples

# At most so many sequences are predicted.
_MOST = 20_000
_WIDE = 1.96


@final
@dataclass(frozen=True)
class Score:
    """Accuracy and log-loss of a rule on unseen sequences, with 95 % intervals."""

    rule: str
    accuracy: float
    accuracy_interval: tuple[float, float]
    loss: float  # nats per sequence
    loss_interval: tuple[float, float]
    worse: tuple[float, float, float]  # loss beyond the automaton's, mean and 95 % interval


def split_graphs(graphs: TokenGraphs, share: float, seed: int = 0) -> tuple[TokenGraphs, Samples]:
    """Set a random share of the samples aside, and build the graphs of the others."""
    if not 0.0 < share < 1.0:
        raise InputError("test", f"{share:g}", "a share above 0 and below 1, or a file")
    samples = graphs.samples
    assert samples is not None
    order = np.random.default_rng(seed_of("held-out sequences", base=seed)).permutation(samples.n)
    many = max(1, round(share * samples.n))
    if many >= samples.n:
        raise InputError("test", counted(samples.n, "sequence"), "enough to train and to test")
    rest = samples[np.sort(order[many:])]
    nothing = np.zeros(0, dtype=np.int64)
    kept = TokenGraphs(keys_of(rest, nothing, nothing), graphs.vocabulary, rest,
                       graphs.unrealisable, graphs.dropped)  # fmt: skip
    return kept, samples[np.sort(order[:many])]


def scores(graphs: TokenGraphs, train: Samples, test: Samples) -> list[Score]:
    """Compare the automaton with rules that choose among the tokens of the sequence as well.

    *bigram* chooses in proportion to how often a token followed the last token, *most frequent* to
    how often it came next at all (both with one more count for every token), *uniform* to how
    often it stands in the sequence. The automaton chooses a random token of the sequence with
    the probability of noise, and at least once in ``2 n + 2`` after a last token seen n times.

    Args:
        graphs, train: what the automaton, and what the other rules learn from.
        test: unseen sequences, of which up to 20,000 are predicted.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.graphs.scoring import scores, split_graphs
        >>> data = am.graphs.planted_choices(3000, noise=0.1)
        >>> graphs = am.token_graphs(data.sequences, data.labels, data.vocabulary)
        >>> train, test = split_graphs(graphs, 0.2)
        >>> found = scores(am.graphs.without_noise(train), train.samples, test)
        >>> [score.rule for score in found]
        ['automaton', 'bigram', 'most frequent', 'uniform']
        >>> all(found[0].loss < other.loss for other in found[1:])
        True
    """
    few = test[np.arange(min(test.n, _MOST))]
    rules = _rules(graphs, train)
    found = {name: _judged(rule, few) for name, rule in rules.items()}
    base = found["automaton"][1]
    return [_score(name, hit, loss, loss - base) for name, (hit, loss) in found.items()]


Predict = Callable[[NDArray[np.int64], NDArray[np.int64], int], NDArray[np.float64]]


def _rules(graphs: TokenGraphs, train: Samples) -> dict[str, Predict]:
    """Return the probabilities of the tokens of a sequence, for each rule."""
    K, automaton = graphs.K, Automaton(graphs)
    seen = np.bincount(train.last, minlength=K)
    often = np.bincount(train.labels, minlength=K) + 1.0
    pairs, times = np.unique(train.last * K + train.labels, return_counts=True)

    def learnt(tokens: Any, counts: Any, last: int) -> NDArray[np.float64]:
        counts_before = counts - (tokens == last)
        answer = automaton.next(np.append(np.repeat(tokens, counts_before), last))
        own = answer.distribution.numpy()[tokens]
        least = max(0.0, 0.5 / (seen[last] + 1.0) - answer.noise)
        return (1.0 - least) * own + least * counts / counts.sum()

    def bigram(tokens: Any, counts: Any, last: int) -> NDArray[np.float64]:
        place = np.searchsorted(pairs, last * K + tokens).clip(max=len(pairs) - 1)
        own = np.where(pairs[place] == last * K + tokens, times[place], 0) + 1.0
        return own / own.sum()

    return {
        "automaton": learnt,
        "bigram": bigram,
        "most frequent": lambda tokens, counts, last: often[tokens] / often[tokens].sum(),
        "uniform": lambda tokens, counts, last: counts / counts.sum(),
    }


def _judged(rule: Predict, test: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute whether the likeliest token is the label, with shares for ties, and the loss."""
    hit, loss = np.zeros(test.n), np.zeros(test.n)
    for i in range(test.n):
        own = row_of(test.tokens, test.start, i)
        tokens, counts = np.unique(own, return_counts=True)
        p = rule(tokens, counts, int(own[-1]))
        best = p > p.max() - 1e-12
        label = tokens == test.labels[i]
        hit[i] = float(best[label].sum() / best.sum())
        loss[i] = -np.log(float(p[label].sum()))
    return hit, loss


def _score(
    name: str, hit: NDArray[np.float64], loss: NDArray[np.float64], worse: NDArray[np.float64]
) -> Score:
    low, high = share_interval(hit.sum(), len(hit))
    mean, *span = _mean(loss)
    interval = (float(low), float(high))
    return Score(name, float(hit.mean()), interval, mean, (span[0], span[1]), _mean(worse))


def _mean(values: NDArray[np.float64]) -> tuple[float, float, float]:
    mean, error = float(values.mean()), float(values.std() / max(len(values), 1) ** 0.5)
    return mean, mean - _WIDE * error, mean + _WIDE * error
