"""The automaton that self-attention learns: hard retrieval, then soft composition (paper C)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.arrays import Array
from attnmargin.errors import InputError
from attnmargin.graphs.cyclic import choices, cyclic_correction
from attnmargin.graphs.newton import Choices, minimum
from attnmargin.graphs.problem import check_embeddings, graph_problem
from attnmargin.graphs.token_graphs import TokenGraphs
from attnmargin.graphs.view import TokenGraph
from attnmargin.problem import margin_problem
from attnmargin.solvers import solve

# Tokens whose margins differ by less than this are level.
_LEVEL = 1e-6


class Rule(StrEnum):
    """Why a token comes next."""

    RETRIEVAL = "retrieval"  # one token dominates all others of the prompt
    COMPOSITION = "composition"  # several tokens of the dominant component share
    MARGIN = "margin"  # the graph leaves it open, the direction W_mm decides
    TIE = "tie"  # W_mm does not tell them apart: the theory is silent
    UNSEEN = "unseen"  # no training sequence ends with this token


@final
@dataclass(frozen=True, eq=False)
class Next:
    """The distribution of the next token, and the rule that it follows from."""

    rule: Rule
    distribution: Tensor  # (K,)
    tokens: list[tuple[str, float]]  # those of positive probability, most likely first
    beaten: list[str]  # other tokens of the prompt
    margin: float  # of W_mm between the two; infinite where nothing is beaten

    @property
    def decided(self) -> bool:
        """Whether the theory decides it."""
        return self.rule not in (Rule.TIE, Rule.UNSEEN)

    def __str__(self) -> str:
        names = [name for name, _ in self.tokens]
        shares = ", ".join(
            name if len(names) == 1 else f"{name} {share:.4f}" for name, share in self.tokens
        )
        over = f" over {', '.join(self.beaten)}" if self.beaten else ""
        return f"{shares}: {self.rule} of {', '.join(names)}{over}"


class _Logits(NamedTuple):
    """Logits of some tokens: those that grow with training, and those that stay."""

    hard: NDArray[np.float64]
    soft: NDArray[np.float64]


@final
class Automaton:
    """What one-layer attention does after long training on next-token data.

    With ``W ≈ R · W_mm + W_cyc`` and R → ∞ (paper C, Theorem 3), the softmax keeps the tokens with
    the largest ``e_jᵀ W_mm e_k``, k the last token, and shares attention among them like
    ``e^{e_jᵀ W_cyc e_k}``; a token that stands twice counts twice.

    Args:
        graphs: of the training data, with their samples.
        E: embeddings ``(K, d)``; without them orthonormal ones, where every graph is by itself.

    Example:
        >>> import attnmargin as am
        >>> sequences, labels = [["a", "b", "c"], ["b", "a", "c"], ["a", "b", "c"]], ["a", "b", "a"]
        >>> automaton = am.Automaton(am.token_graphs(sequences, labels))
        >>> print(automaton.next(["b", "c", "a", "c"]))
        a 0.6667, b 0.3333: composition of a, b over c
    """

    def __init__(self, graphs: TokenGraphs, E: Array | None = None) -> None:
        self.graphs, self._weights = graphs, None
        self._graphs: dict[int, TokenGraph | None] = {}
        self._own: dict[int, _Logits] = {}
        self._choices: tuple[Choices, NDArray[np.int64]] | None = None
        if E is None:
            return
        self._E = check_embeddings(E, graphs.K).cpu().double()
        if self._E.ndim != 2:
            raise InputError("E", f"shape {tuple(self._E.shape)}", "embeddings (K, d)")
        solution = solve(graph_problem(self._E, graphs))
        solution.raise_for_status()
        self._weights = solution.W, self._correction()

    def _correction(self) -> Tensor:
        if self.graphs.acyclic:
            return torch.zeros(self._E.shape[1], self._E.shape[1], dtype=torch.float64)
        samples = self._samples()
        return cyclic_correction(self._E, samples.sequences(), samples.labels, self.graphs)

    def _samples(self) -> Any:
        if self.graphs.samples is None:
            raise InputError("graphs", "graphs without samples", "keep_samples=True")
        return self.graphs.samples

    def next(self, prompt: Any) -> Next:
        """The next token after a prompt: a list of ids or names, or a string of names."""
        words = prompt.split() if isinstance(prompt, str) else prompt
        if not isinstance(words, list | tuple | np.ndarray) or len(words) == 0:
            raise InputError("prompt", repr(prompt), "at least one token")
        ids, last = _prompt(self.graphs, words)
        tokens, counts = np.unique(ids, return_counts=True)
        graph = self._graph(last)
        if graph is None and self._weights is None:
            zero = _Logits(np.zeros(len(tokens)), np.zeros(len(tokens)))
            return self._answer(tokens, counts, zero, Rule.UNSEEN)
        logits = self._logits(last, tokens, graph)
        return self._answer(tokens, counts, logits, _rule(graph, tokens, logits.hard))

    def _graph(self, last: int) -> TokenGraph | None:
        if last not in self._graphs:
            self._graphs[last] = self.graphs.at(last)
        return self._graphs[last]

    def generate(self, prompt: Any, steps: int, *, seed: int = 0) -> list[str]:
        """The names of a prompt continued by so many tokens, each drawn from what comes next."""
        words = prompt.split() if isinstance(prompt, str) else list(prompt)
        ids = _prompt(self.graphs, words)[0].tolist()
        generator = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            drawn = torch.multinomial(self.next(ids).distribution, 1, generator=generator)
            ids.append(int(drawn))
        return [self.graphs.vocabulary.name(k) for k in ids]

    def _answer(
        self, tokens: NDArray[np.int64], counts: NDArray[Any], logits: _Logits, rule: Rule
    ) -> Next:
        best = logits.hard >= logits.hard.max() - _LEVEL
        share = np.where(best, counts * np.exp(logits.soft - logits.soft[best].max()), 0.0)
        share /= share.sum()
        distribution = torch.zeros(self.graphs.K, dtype=torch.float64)
        distribution[torch.from_numpy(tokens)] = torch.from_numpy(share)
        name = self.graphs.vocabulary.name
        order = np.argsort(-share, kind="stable")
        chosen = [(name(int(tokens[i])), float(share[i])) for i in order if best[i]]
        beaten = [name(int(tokens[i])) for i in range(len(tokens)) if not best[i]]
        margin = logits.hard.max() - logits.hard[~best].max() if beaten else np.inf
        return Next(rule, distribution, chosen, beaten, float(margin))

    def _logits(self, last: int, tokens: NDArray[np.int64], graph: TokenGraph | None) -> _Logits:
        if self._weights is not None:
            rows, query = self._E[torch.from_numpy(tokens)], self._E[last]
            hard, soft = ((rows @ (W @ query)).numpy() for W in self._weights)
            return _Logits(hard, soft)
        assert graph is not None
        if last not in self._own:
            self._own[last] = _Logits(_margins(graph), self.shares(graph))
        place, known = graph.places_of(tokens)
        return _Logits(*(np.where(known, x[place], 0.0) for x in self._own[last]))

    def shares(self, graph: TokenGraph) -> NDArray[np.float64]:
        """Logits inside the components of one graph, for orthonormal embeddings."""
        soft = np.zeros(len(graph.tokens))
        if graph.acyclic:
            return soft
        if self._choices is None:
            self._choices = choices(self._samples(), self.graphs)
        given, nodes = self._choices
        own = self.graphs.place_of(np.full(len(soft), graph.last), graph.tokens)
        for part in range(len(graph.layer)):
            inside = (graph.component == part).nonzero()[0]
            if len(inside) > 1:
                soft[inside] = _component_shares(given, np.searchsorted(nodes, own[inside]))
        return soft


def _prompt(graphs: TokenGraphs, words: Any) -> tuple[NDArray[np.int64], int]:
    try:
        ids = graphs.vocabulary.ids(words)
    except InputError as error:
        raise InputError("prompt", str(error).split("got ")[-1].split(";")[0],
                         "tokens of the vocabulary") from None  # fmt: skip
    return ids, int(ids[-1])


def _rule(graph: TokenGraph | None, tokens: NDArray[np.int64], hard: NDArray[Any]) -> Rule:
    """Which rule decides among the tokens of a prompt."""
    best = hard >= hard.max() - _LEVEL
    parts = np.full(len(tokens), -1) if graph is None else graph.components_of(tokens)
    if graph is not None and (parts >= 0).all():
        top = int(parts[np.argmin(graph.layer[parts])])
        if (graph.reach[top, parts] | (parts == top)).all():
            return Rule.COMPOSITION if (parts == top).sum() > 1 else Rule.RETRIEVAL
    together = parts[best].min() >= 0 and parts[best].min() == parts[best].max()
    return Rule.MARGIN if best.sum() == 1 or together else Rule.TIE


def _margins(graph: TokenGraph) -> NDArray[np.float64]:
    """Logits of W_mm for orthonormal embeddings, ``(N,)``: one number per component.

        min Σ_c |c| w_c²  subject to  w_c − w_c′ ≥ 1 for every edge c → c′

    Edges that a longer path implies are left out.
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
    """Logits of one component with mean zero, from the choices among its tokens."""
    counts = given.counts[:, columns]
    rows = np.diff(counts.indptr).nonzero()[0]
    chosen = np.searchsorted(columns, given.chosen[rows])
    return minimum(Choices(counts[rows], chosen))
