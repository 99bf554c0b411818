"""Token-priority graphs, Graph-SVM, finite part and automaton against networkx and loops."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

import attnmargin as am
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import seeded
from tests.hunt.oracle_exact import exact_rows, shortest_point


@dataclass(frozen=True)
class Sample:
    """A small next-token data set with embeddings."""

    sequences: list[list[int]]
    labels: list[int]
    K: int
    E: Any  # (K, d)
    realisable: bool
    adversarial: bool

    def arrays(self) -> dict[str, Any]:
        """Everything, padded with −1."""
        T = max(map(len, self.sequences))
        rows = [row + [-1] * (T - len(row)) for row in self.sequences]
        return {"sequences": np.array(rows), "labels": np.array(self.labels), "E": self.E}


def _sample(rng: np.random.Generator, k: int) -> Sample:
    K, n = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    sequences = [rng.integers(0, K, int(rng.integers(1, 6))).tolist() for _ in range(n)]
    labels = [int(rng.choice(row)) for row in sequences]
    if k % 4 == 3:
        labels = rng.integers(0, K, n).tolist()
    d = int(rng.integers(1, 5))
    E = rng.standard_normal((K, d))
    adversarial = k % 3 != 0
    if k % 3 == 1:
        E = rng.integers(-2, 3, (K, d)).astype(float)
    elif k % 3 == 2:
        E = E * 10.0 ** rng.uniform(-4, 4, (K, 1))
    inside = all(y in row for row, y in zip(sequences, labels, strict=True))
    return Sample(sequences, labels, K, E, inside, adversarial)


def graphs_of(sample: Sample) -> dict[int, Any]:
    """Build the graph of every last token, edge by edge (paper C, Section 3.1)."""
    graphs: dict[int, Any] = {}
    for row, label in zip(sample.sequences, sample.labels, strict=True):
        graph = graphs.setdefault(row[-1], nx.DiGraph())
        graph.add_node(label)
        for token in row:
            graph.add_node(token)
            if token != label:
                graph.add_edge(label, token)
    return graphs


Check = Callable[[Sample, am.TokenGraphs, dict[int, Any]], str]


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per data set and question."""
    checks: dict[str, Check] = {"structure": _structure, "order": _order, "svm": _svm,
                                "finite": _finite, "next": _next}  # fmt: skip
    k = 0
    while True:
        rng = seeded(seed, "graphs", k)
        sample = _sample(rng, k)
        cases = []
        for name, check in checks.items():
            if sample.realisable or name in ("structure", "order", "svm"):
                cases.append(_asked(name, check, sample))
        yield cases
        k += 1


def _asked(name: str, check: Check, sample: Sample) -> Case:
    try:
        found = am.token_graphs(sample.sequences, sample.labels, sample.K)
        about = check(sample, found, graphs_of(sample))
    except Exception as error:
        about = f"{type(error).__name__}: {error}"
    answer = Answer.WRONG if about else Answer.RIGHT
    if about.startswith("undecided"):
        answer = Answer.UNDECIDED
    return Case(answer, name, sample.adversarial, about, sample.arrays())


def _structure(sample: Sample, found: am.TokenGraphs, truth: dict[int, Any]) -> str:
    """Nodes, edges and components."""
    if sorted(truth) != found.roots.tolist():
        return f"last tokens {found.roots.tolist()}"
    for graph in found:
        own = truth[graph.last]
        edges = {(int(graph.tokens[a]), int(graph.tokens[b])) for a, b in graph.edges}
        if set(graph.tokens.tolist()) != set(own.nodes) or edges != set(own.edges):
            return f"nodes or edges of {graph.last}"
        parts = {frozenset(part) for part in graph.components}
        if parts != {frozenset(part) for part in nx.strongly_connected_components(own)}:
            return f"components of {graph.last}: {graph.components}"
    acyclic = all(nx.is_directed_acyclic_graph(own) for own in truth.values())
    if found.acyclic != acyclic or found.realisable != sample.realisable:
        return "acyclic or realisable"
    return ""


def _order(sample: Sample, found: am.TokenGraphs, truth: dict[int, Any]) -> str:
    """Layers, reach, covers, dominance and equality."""
    for graph in found:
        own = nx.condensation(truth[graph.last])
        name = {frozenset(own.nodes[c]["members"]): c for c in own}
        part = [name[frozenset(tokens)] for tokens in graph.components]
        depth: dict[int, int] = {}
        for c in nx.topological_sort(own):
            depth[c] = max((depth[b] + 1 for b in own.predecessors(c)), default=0)
        if [depth[c] for c in part] != graph.layer.tolist():
            return f"layers of {graph.last}: {graph.layer.tolist()}"
        closed = nx.transitive_closure_dag(own)
        reach = [[closed.has_edge(a, b) for b in part] for a in part]
        if reach != graph.reach.tolist():
            return f"reach of {graph.last}"
        covers = {(part[a], part[b]) for a, b in graph.covers}
        if covers != set(nx.transitive_reduction(own).edges):
            return f"covers of {graph.last}"
    strict, level = rows_of(truth)
    if set(zip(*(x.tolist() for x in found.dominance), strict=True)) != strict:
        return "dominance"
    implied = nx.Graph()
    for i, j, k in zip(*(x.tolist() for x in found.equality), strict=True):
        implied.add_edge((i, k), (j, k))
    pairs = nx.Graph()
    pairs.add_edges_from(((i, k), (j, k)) for i, j, k in level)
    same = {frozenset(c) for c in nx.connected_components(implied)}
    return "" if same == {frozenset(c) for c in nx.connected_components(pairs)} else "equality"


Triples = set[tuple[int, int, int]]


def rows_of(truth: dict[int, Any]) -> tuple[Triples, Triples]:
    """All (i ⇒ j) and all (i ≍ j), with their last tokens."""
    strict, level = set(), set()
    for k, graph in truth.items():
        home = {
            t: c for c, part in enumerate(nx.strongly_connected_components(graph)) for t in part
        }
        strict |= {(i, j, k) for i, j in graph.edges if home[i] != home[j]}
        level |= {(i, j, k) for i in home for j in home if i < j and home[i] == home[j]}
    return strict, level


def exact_svm(E: Any, truth: dict[int, Any]) -> list[Fraction] | None:
    """The exact solution of Graph-SVM; None if infeasible."""
    strict, level = rows_of(truth)
    rows = [*sorted(strict), *sorted(level)]
    if not rows:
        return [Fraction(0)] * E.shape[1] ** 2
    table = [[Fraction(float(x)) for x in row] for row in E]
    left = [[a - b for a, b in zip(table[i], table[j], strict=True)] for i, j, _ in rows]
    right = [table[k] for _, _, k in rows]
    equality = np.arange(len(rows)) >= len(strict)
    sides = [np.array(side, dtype=object) for side in (left, right)]
    found = shortest_point(exact_rows(sides[0], sides[1], (~equality).astype(float), equality))
    return None if found is None else found.w


def _svm(sample: Sample, found: am.TokenGraphs, truth: dict[int, Any]) -> str:
    """Feasibility and W of Graph-SVM."""
    solution, exact = am.solve(am.graph_problem(sample.E, found)), exact_svm(sample.E, truth)
    if solution.status == am.Status.INACCURATE:
        return "undecided: inaccurate"
    if (exact is None) != (solution.status == am.Status.INFEASIBLE):
        return f"{solution.status}, exactly {'in' if exact is None else ''}feasible"
    if exact is None:
        return ""
    W = np.array([float(x) for x in exact])
    error = np.abs(solution.W.flatten().numpy() - W).max()
    return "" if error <= 1e-6 * np.abs(W).max() else f"W is off by {error / np.abs(W).max():.1e}"


def _cyclic_rows(sample: Sample, truth: dict[int, Any]) -> list[tuple[Any, Any, int]]:
    """The cyclic data: counts of the tokens of the label's component, the label, the query."""
    rows = []
    for row, label in zip(sample.sequences, sample.labels, strict=True):
        parts = nx.strongly_connected_components(truth[row[-1]])
        home = next(part for part in parts if label in part)
        kept = [t for t in row if t in home]
        if len(set(kept)) > 1:
            rows.append((np.bincount(kept, minlength=sample.K), label, row[-1]))
    return rows


def _finite(sample: Sample, found: am.TokenGraphs, truth: dict[int, Any]) -> str:
    """W_cyc: the gradient of the convex loss is zero there, and it lies in S_cyc."""
    E = sample.E / np.linalg.norm(sample.E, axis=1, keepdims=True).clip(1e-300)
    W = am.cyclic_correction(E, sample.sequences, sample.labels, found).numpy()
    rows = _cyclic_rows(sample, truth)
    gradient = np.zeros_like(W)
    for counts, label, k in rows:
        logits = E @ W @ E[k]
        weight = counts * np.exp(logits - logits[counts > 0].max())
        share = weight / weight.sum()
        gradient += np.outer(E.T @ (share - np.eye(sample.K)[label]), E[k]) / len(rows)
    if np.abs(gradient).max() > 1e-8:
        return f"gradient {np.abs(gradient).max():.1e} at W_cyc"
    return _outside(W, E, truth)


def _outside(W: Any, E: Any, truth: dict[int, Any]) -> str:
    """Say if W is not in the span of ``(e_i − e_j) e_kᵀ`` over equal tokens."""
    _, level = rows_of(truth)
    if not level:
        return "" if np.abs(W).max() == 0.0 else "W_cyc of acyclic data is not zero"
    span = np.array([np.outer(E[i] - E[j], E[k]).ravel() for i, j, k in sorted(level)])
    beta = np.linalg.lstsq(span.T, W.ravel(), rcond=1e-10)[0]
    rest = np.abs(span.T @ beta - W.ravel()).max()
    return "" if rest <= 1e-7 * max(np.abs(W).max(), 1.0) else f"{rest:.1e} outside of S_cyc"


def _next(sample: Sample, found: am.TokenGraphs, truth: dict[int, Any]) -> str:
    """The next token after every training sequence and its reverse, orthonormal embeddings."""
    automaton, K = am.graphs.Automaton(found), sample.K
    E = np.eye(K)
    exact = exact_svm(E, truth)
    if exact is None:
        return "Graph-SVM with orthonormal embeddings is infeasible"
    W_cyc = am.cyclic_correction(E, sample.sequences, sample.labels, found).numpy()
    for row in sample.sequences:
        for prompt in (row, row[::-1]):
            answer = automaton.next(prompt)
            hard = [exact[j * K + prompt[-1]] for j in range(K)]
            best = max(hard[j] for j in prompt)
            kept = np.array([prompt.count(j) * (hard[j] == best) for j in range(K)], dtype=float)
            share = kept * np.exp(W_cyc[:, prompt[-1]])
            share /= share.sum()
            close = [j for j in prompt if 0 < best - hard[j] < 1e-5]
            wrong = np.abs(answer.distribution.numpy() - share).max() > 1e-6
            if answer.decided and wrong and not close:
                return f"after {prompt}: {answer}, exactly {share.round(4).tolist()}"
    return ""
