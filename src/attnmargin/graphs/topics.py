"""Topics: sets of token-priority graphs, and what a mixture of them predicts (2501.06382)."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.graphs.automaton import Automaton
from attnmargin.graphs.collection import TokenGraphs, token_graphs

Ids = NDArray[np.int64]

# Shares of attention that differ by less are equal.
_EQUAL = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Topic:
    """A topic: for every last token, an order of its tokens by priority.

    Args:
        tokens: the m tokens of the topic.
        rank: ``(K, K)``; with the last token k, ``rank[k, j]`` is the place of token j, 0 the
            highest priority. Only the tokens of the topic count.

    Example:
        >>> topic = Topic(np.array([0, 2]), np.array([[0, 9, 1], [9, 9, 9], [1, 9, 0]]))
        >>> topic.best(np.array([[2, 0, 0], [0, 0, 2]])).tolist()
        [0, 2]
    """

    tokens: Ids
    rank: Ids

    def best(self, prompts: Ids) -> Ids:
        """Return the token of highest priority in each prompt ``(n, T)``."""
        places = self.rank[prompts[:, -1:], prompts].argmin(1)
        found: Ids = np.take_along_axis(prompts, places[:, None], 1)[:, 0]
        return found

    def prompts(self, n: int, T: int, rng: np.random.Generator) -> Ids:
        """Draw n prompts of T tokens of the topic."""
        return rng.choice(self.tokens, (n, T))


def random_topics(
    K: int, tokens: int, overlap: int, name: str, seed: int = 0
) -> tuple[Topic, Topic]:
    """Draw two topics of some of K tokens each, which share ``overlap`` tokens.

    Example:
        >>> one, two = random_topics(8, tokens=5, overlap=2, name="docs")
        >>> len(set(one.tokens.tolist()) & set(two.tokens.tolist()))
        2
    """
    check_whole(K=K, tokens=tokens)
    check_whole(0, overlap=overlap)
    if overlap > tokens or 2 * tokens - overlap > K:
        got = f"{overlap} for two topics of {tokens} of {K} tokens"
        raise InputError("overlap", got, "from 2 tokens − K to tokens")
    rng = np.random.default_rng(seed_of("topics", name, base=seed))
    order = rng.permutation(K)
    parts = order[:tokens], order[tokens - overlap : 2 * tokens - overlap]
    one, two = (
        Topic(np.sort(part), rng.permuted(np.tile(np.arange(K), (K, 1)), axis=1)) for part in parts
    )
    return one, two


def mixture(topics: tuple[Topic, ...], counts: tuple[int, ...], T: int,
            rng: np.random.Generator) -> tuple[Ids, Ids]:  # fmt: skip
    """Draw training data of several topics: sequences ``(n, T)`` and the tokens that follow."""
    parts = [topic.prompts(n, T, rng) for topic, n in zip(topics, counts, strict=True)]
    labels = [topic.best(part) for topic, part in zip(topics, parts, strict=True)]
    return np.concatenate(parts), np.concatenate(labels)


@final
@dataclass(frozen=True, eq=False)
class Continuation:
    """What comes after prompts of one topic, by a model of several."""

    predicted: Ids  # (n,) the most likely next token
    expected: Ids  # (n,) the token of highest priority in the topic
    outnumbers: NDArray[np.bool_]  # (n,) predicted occurs more often than every higher token

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Whether the topic changes, ``(n,)``."""
        return self.predicted != self.expected


def continuation(topic: Topic, prompts: Ids, predicted: Ids) -> Continuation:
    """Compare predictions with a topic.

    Tokens below the last one are never chosen, so the topic's graph does not order them.

    Args:
        predicted: ``(n,)``, a token of each prompt.

    Example:
        >>> topic = Topic(np.array([0, 1]), np.array([[0, 1], [0, 1]]))      # 0 before 1
        >>> found = continuation(topic, np.array([[0, 1, 1], [0, 1, 0]]), np.array([1, 1]))
        >>> found.changed.tolist(), found.outnumbers.tolist()
        ([True, True], [True, False])
    """
    rank = topic.rank[prompts[:, -1:], prompts]
    times = (prompts[:, :, None] == prompts[:, None, :]).sum(2)
    own = topic.rank[prompts[:, -1], predicted]
    count = (prompts == predicted[:, None]).sum(1)
    higher = (rank < own[:, None]) & (rank <= rank[:, -1:])
    above = np.where(higher, times, 0).max(1)
    return Continuation(predicted, topic.best(prompts), count > above)


def most_likely(automaton: Automaton, prompts: Ids) -> Ids:
    """Return the most likely next token of each prompt ``(n, T)``; of equal ones the first."""
    return np.array([int(automaton.next(p).distribution.argmax()) for p in prompts])


def inversions(
    topic: Topic, sequences: Ids, labels: Ids, K: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare the order of a topic with that of a mixture, pair by pair.

    Token i is above j in the topic's graph of k if i comes next after prompts with j; for this i
    must not be below k itself, which is part of the prompt.

    Returns:
        For every such pair: whether the mixture's graph ranks j strictly above i, and whether its
        attention weighs j more than i.
    """
    mixed = token_graphs(sequences, labels, K)
    automaton = Automaton(mixed)
    strict, soft = [], []
    for k, i, j in ordered_triples(topic):
        strict.append(_above(mixed, k, j, i))
        others = [token for token in (i, j) if token != k]
        p = automaton.next([*others, k]).distribution
        soft.append(bool(p[j] > p[i] + _EQUAL))
    return np.array(strict), np.array(soft)


def ordered_triples(topic: Topic) -> list[tuple[int, int, int]]:
    """List last token k and pairs i above j that a topic's own graphs order."""
    found = []
    for k in topic.tokens.tolist():
        order = sorted(topic.tokens.tolist(), key=lambda j: int(topic.rank[k, j]))
        choosable = order[: order.index(k) + 1]
        found += [(k, i, j) for i in choosable for j in order[order.index(i) + 1 :]]
    return found


def _above(graphs: TokenGraphs, last: int, one: int, two: int) -> bool:
    """Return whether a graph ranks one token strictly above another."""
    graph = graphs.at(last)
    if graph is None or (graph.components_of(np.array([one, two])) < 0).any():
        return False
    return graph.dominates(one, two)
