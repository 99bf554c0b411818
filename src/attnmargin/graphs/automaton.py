"""The automaton that self-attention learns: hard retrieval, then soft composition (paper C)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.arrays import Array
from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.data.embeddings import embedding_table
from attnmargin.graphs.collection import TokenGraphs
from attnmargin.graphs.cyclic import choices, correction
from attnmargin.graphs.graph import TokenGraph
from attnmargin.graphs.newton import Choices, minimum
from attnmargin.graphs.problem import check_graphs, graph_problem
from attnmargin.margin.problem import margin_problem
from attnmargin.solvers.entry import solve

# Tokens whose margins differ by less than this tie.
_LEVEL = 1e-6
# Above this many edges between components, skip solving for W_mm if the graph decides alone.
_LARGE = 2000


class Rule(StrEnum):
    """The reason why a token comes next."""

    RETRIEVAL = "retrieval"  # one token dominates all other tokens of the prompt
    COMPOSITION = "composition"  # several tokens of the dominant component share attention
    MARGIN = "margin"  # the graph leaves the order open, and the direction W_mm decides
    TIE = "tie"  # W_mm ties as well: the theory makes no prediction
    UNSEEN = "unseen"  # no training sequence ends with this token


@final
@dataclass(frozen=True, eq=False, repr=False)
class Next:
    """The distribution of the next token, and the rule that determines it."""

    rule: Rule
    distribution: Tensor  # (K,)
    tokens: list[tuple[str, float]]  # tokens of positive probability, most likely first
    beaten: list[str]  # the other tokens of the prompt
    margin: float  # of W_mm, winners over beaten; infinite if none is beaten, NaN if not computed
    strange: list[str]  # prompt tokens never seen with this last token
    noise: float = 0.0  # probability of a random token of the prompt, beaten ones included

    @property
    def decided(self) -> bool:
        """Whether the theory determines the answer."""
        return self.rule not in (Rule.TIE, Rule.UNSEEN)

    def __repr__(self) -> str:
        return f"<Next {self}>"

    def __str__(self) -> str:
        names = [name for name, _ in self.tokens]
        shares = ", ".join(
            name if len(names) == 1 else f"{name} {share:.4f}" for name, share in self.tokens
        )
        over = f" over {', '.join(self.beaten)}" if self.beaten else ""
        noise = f", with {self.noise:.4f} of noise" if self.noise else ""
        return f"{shares}: {self.rule} of {', '.join(names)}{over}{noise}"


@final
class Automaton:
    """What one-layer attention does after long training on next-token data.

    Let k be the last token. With ``W ≈ R · W_mm + W_cyc`` and R → ∞ (paper C, Theorem 3), the
    softmax keeps the tokens j with the largest ``e_jᵀ W_mm e_k`` and shares attention among them
    in proportion to ``e^{e_jᵀ W_cyc e_k}``. A token that occurs twice counts twice. If the graphs
    have noise, a random token of the prompt comes next with its probability.

    Args:
        graphs: graphs of the training data, with their samples.
        E: embeddings ``(K, d)``; orthonormal by default, which decouples the graphs.

    Example:
        >>> import attnmargin as am
        >>> sequences, labels = [["a", "b", "c"], ["b", "a", "c"], ["a", "b", "c"]], ["a", "b", "a"]
        >>> automaton = am.graphs.Automaton(am.token_graphs(sequences, labels))
        >>> print(automaton.next(["b", "c", "a", "c"]))
        a 0.6667, b 0.3333: composition of a, b over c
    """

    def __init__(self, graphs: TokenGraphs, E: Array | None = None) -> None:
        self.graphs, self._weights = check_graphs(graphs), None
        if not graphs.realisable:
            got = f"labels outside of {counted(graphs.unrealisable, 'sequence')} (Assumption 2)"
            raise InputError("graphs", got, "realisable labels, such as unrealisable='drop' leaves")
        self._graphs: dict[int, TokenGraph | None] = {}
        self._hard: dict[int, NDArray[np.float64]] = {}
        self._soft: dict[int, NDArray[np.float64]] = {}
        self._choices: tuple[Choices, NDArray[np.int64]] | None = None
        if E is None:
            return
        self._E = embedding_table(E, graphs.K, batched=False).cpu().double()
        solution = solve(graph_problem(self._E, graphs))
        solution.raise_for_status()
        self._weights = solution.W, self._correction()

    def _correction(self) -> Tensor:
        if self.graphs.acyclic:
            return torch.zeros(self._E.shape[1], self._E.shape[1], dtype=torch.float64)
        given, nodes = self._given()
        return correction(self._E, self.graphs, given, nodes)

    def _given(self) -> tuple[Choices, NDArray[np.int64]]:
        """Return the choices inside components."""
        if self.graphs.samples is None:
            raise InputError("graphs", "graphs without samples", "keep_samples=True")
        if self._choices is None:
            self._choices = choices(self.graphs.samples, self.graphs)
        return self._choices

    def next(self, prompt: Any) -> Next:
        """Predict the token after a prompt: a list of ids or names, or a string of names."""
        return self._next(self._ids(prompt))

    def generate(self, prompt: Any, steps: int, *, seed: int = 0) -> list[str]:
        """Continue a prompt by ``steps`` tokens, each drawn from the next-token distribution."""
        for name, value in (("steps", steps), ("seed", seed)):
            if not isinstance(value, int) or not 0 <= value < 1 << 63:
                raise InputError(name, repr(value), "a whole number that is not negative")
        ids = self._ids(prompt)
        # torch.multinomial draws other tokens in other versions.
        for u in np.random.default_rng(seed).random(steps):
            total = np.cumsum(self._next(ids).distribution.numpy())
            ids = np.append(ids, np.searchsorted(total, u * total[-1], side="right"))
        return [self.graphs.vocabulary.name(int(k)) for k in ids]

    def _ids(self, prompt: Any) -> NDArray[np.int64]:
        words = prompt.split() if isinstance(prompt, str) else prompt
        if isinstance(words, np.ndarray | Tensor):
            words = words.tolist()
        if not isinstance(words, Iterable):
            raise InputError("prompt", repr(prompt), "a list of tokens")
        ids = self.graphs.vocabulary.ids(words, "prompt")
        if len(ids) == 0:
            raise InputError("prompt", repr(prompt), "at least one token")
        return ids

    def _next(self, ids: NDArray[np.int64]) -> Next:
        """Apply the rule: first the graph, then the direction."""
        tokens, counts = np.unique(ids, return_counts=True)
        last = int(ids[-1])
        graph = self._graph(last)
        dominant = np.array([True]) if len(tokens) == 1 else _dominant(graph, tokens)
        hard = self._hard_logits(last, tokens, graph, dominant)
        best = hard >= hard.max() - _LEVEL if dominant is None else dominant
        soft = np.zeros(len(tokens))
        if best.sum() > 1 and (graph is not None or self._weights is not None):
            soft = self._soft_logits(last, tokens, graph)
        if dominant is not None:
            rule = Rule.COMPOSITION if best.sum() > 1 else Rule.RETRIEVAL
        elif hard.max() - hard.min() < _LEVEL and graph is None:
            rule = Rule.UNSEEN
        else:
            rule = _open_rule(graph, tokens, best)
        share = np.zeros(len(tokens))
        share[best] = counts[best] * np.exp(soft[best] - soft[best].max())
        strange = tokens if graph is None else tokens[graph.components_of(tokens) < 0]
        answer = self._answer(tokens, share / share.sum(), hard, rule, strange)
        noise = 0.0 if self.graphs.noise is None else self.graphs.noise.at(last)
        return self._noisy(answer, noise, tokens, counts / counts.sum()) if noise else answer

    def _noisy(
        self,
        answer: Next,
        noise: float,
        tokens: NDArray[np.int64],
        share: NDArray[np.float64],
    ) -> Next:
        """Mix the distribution with random tokens of the prompt, as likely as they are frequent."""
        mixed = (1.0 - noise) * answer.distribution
        mixed[torch.from_numpy(tokens)] += noise * torch.from_numpy(share)
        names = (self.graphs.vocabulary.name(int(k)) for k in tokens)
        floor = dict(zip(names, (noise * share).tolist(), strict=True))
        chosen = [(name, (1.0 - noise) * own + floor[name]) for name, own in answer.tokens]
        return replace(answer, distribution=mixed, tokens=chosen, noise=noise)

    def _graph(self, last: int) -> TokenGraph | None:
        if last not in self._graphs:
            self._graphs[last] = self.graphs.at(last)
        return self._graphs[last]

    def _answer(
        self,
        tokens: NDArray[np.int64],
        share: NDArray[np.float64],
        hard: NDArray[np.float64],
        rule: Rule,
        strange: NDArray[np.int64],
    ) -> Next:
        best, distribution = share > 0.0, torch.zeros(self.graphs.K, dtype=torch.float64)
        distribution[torch.from_numpy(tokens)] = torch.from_numpy(share)
        name = self.graphs.vocabulary.name
        order = np.argsort(-share, kind="stable")
        chosen = [(name(int(tokens[i])), float(share[i])) for i in order if best[i]]
        beaten = [name(int(tokens[i])) for i in range(len(tokens)) if not best[i]]
        margin = hard[best].max() - hard[~best].max() if beaten else np.inf
        unknown = [name(int(k)) for k in strange]
        return Next(rule, distribution, chosen, beaten, float(margin), unknown)

    def _hard_logits(
        self,
        last: int,
        tokens: NDArray[np.int64],
        graph: TokenGraph | None,
        dominant: NDArray[np.bool_] | None,
    ) -> NDArray[np.float64]:
        """Compute the logits of W_mm; NaN if a large graph decides without them."""
        if self._weights is not None:
            rows = self._E[torch.from_numpy(tokens)]
            return (rows @ (self._weights[0] @ self._E[last])).numpy()
        if graph is None:
            return np.zeros(len(tokens))
        if dominant is not None and len(graph.condensation) > _LARGE:
            return np.full(len(tokens), np.nan)
        if last not in self._hard:
            self._hard[last] = margins(graph)
        place, known = graph.places_of(tokens)
        return np.where(known, self._hard[last][place], 0.0)

    def _soft_logits(
        self, last: int, tokens: NDArray[np.int64], graph: TokenGraph | None
    ) -> NDArray[np.float64]:
        """Compute the logits of W_cyc."""
        if self._weights is not None:
            rows = self._E[torch.from_numpy(tokens)]
            return (rows @ (self._weights[1] @ self._E[last])).numpy()
        assert graph is not None
        if last not in self._soft:
            self._soft[last] = self.shares(graph)
        place, known = graph.places_of(tokens)
        return np.where(known, self._soft[last][place], 0.0)

    def shares(self, graph: TokenGraph) -> NDArray[np.float64]:
        """Compute the logits inside the components of one graph, for orthonormal embeddings."""
        soft = np.zeros(len(graph.tokens))
        if graph.acyclic:
            return soft
        given, nodes = self._given()
        own = self.graphs.place_of(np.full(len(soft), graph.last), graph.tokens)
        for part in range(len(graph.layer)):
            inside = (graph.component == part).nonzero()[0]
            if len(inside) > 1:
                soft[inside] = _component_shares(given, np.searchsorted(nodes, own[inside]))
        return soft


def _dominant(graph: TokenGraph | None, tokens: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Mark the tokens of the component that dominates the whole prompt; None if there is none."""
    if graph is None:
        return None
    parts = graph.components_of(tokens)
    if (parts < 0).any():
        return None
    top = int(parts[np.argmin(graph.layer[parts])])
    above: NDArray[np.bool_] = parts == top
    return above if bool((graph.reach[top, parts] | above).all()) else None


def _open_rule(
    graph: TokenGraph | None, tokens: NDArray[np.int64], best: NDArray[np.bool_]
) -> Rule:
    """Name the rule that applies when the graph leaves the order open."""
    parts = np.full(len(tokens), -1) if graph is None else graph.components_of(tokens)
    together = parts[best].min() >= 0 and parts[best].min() == parts[best].max()
    return Rule.MARGIN if best.sum() == 1 or together else Rule.TIE


def margins(graph: TokenGraph) -> NDArray[np.float64]:
    """Compute the logits of W_mm for orthonormal embeddings, ``(N,)``: one value per component.

        min Σ_c |c| w_c²  subject to  w_c − w_c′ ≥ 1 for every edge c → c′

    Edges implied by a longer path are skipped.
    """
    covers = graph.covers
    size = np.bincount(graph.component, minlength=len(graph.layer)) ** 0.5
    if len(covers) == 0:
        return np.zeros(len(graph.tokens))
    rows = np.zeros((len(covers), len(size)))
    places = np.arange(len(covers))
    rows[places, covers[:, 0]] = 1.0 / size[covers[:, 0]]
    rows[places, covers[:, 1]] = -1.0 / size[covers[:, 1]]
    solution = solve(margin_problem(rows, np.ones((1, 1))))
    solution.raise_for_status()
    return (solution.vector.numpy() / size)[graph.component]


def _component_shares(given: Choices, columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the logits of one component, with mean zero, from the choices among its tokens."""
    counts = given.counts[:, columns]
    rows = np.diff(counts.indptr).nonzero()[0]
    chosen = np.searchsorted(columns, given.chosen[rows])
    weight = given.weight[rows]
    return minimum(Choices(counts[rows], chosen, weight / weight.sum()))
