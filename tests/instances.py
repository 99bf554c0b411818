"""Data with planted answers: what attention must select, and where theorems fail."""

import torch
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.papers.c.data import Instances, mixed
from attnmargin.papers.c.graphs import SEQUENCES, VOCABULARY


def orthonormal(trials: int, T: int, seed: int = 0) -> am.AttentionData:
    generator = torch.Generator().manual_seed(seed)
    X = torch.linalg.qr(torch.randn(trials, T, T, generator=generator, dtype=torch.float64)).Q
    v = torch.randn(trials, T, generator=generator, dtype=torch.float64)
    v = v / v.norm(dim=-1, keepdim=True)
    z = torch.randn(trials, 1, T, generator=generator, dtype=torch.float64)
    return am.AttentionData(X.unsqueeze(1), z, torch.ones(trials, 1, dtype=torch.float64), v)


def mixed_instances(trials: int, K: int = 6, d: int = 8, n: int = 6, T: int = 4) -> Instances:
    """Random data sets with something to retrieve and something to compose."""
    E, ids, labels = am.graphs.random_next_tokens(K, d, n, T, trials=8 * trials, name="cyclic")
    graphs = [am.token_graphs(x, y, K) for x, y in zip(ids, labels, strict=True)]
    keep = [k for k, g in enumerate(graphs) if mixed(g)][:trials]
    return Instances(E[keep], ids[keep], labels[keep], [graphs[k] for k in keep])


@st.composite
def next_token_data(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int]:
    """Sequences of any length; labels may be missing from them, tokens may be isolated."""
    K = draw(st.integers(1, 7))
    token = st.integers(0, K - 1)
    sequences = draw(st.lists(st.lists(token, min_size=1, max_size=6), min_size=1, max_size=12))
    return sequences, [draw(token) for _ in sequences], K


def seven() -> am.TokenGraphs:
    return am.token_graphs([list(x) for x, _ in SEQUENCES], [y for _, y in SEQUENCES], VOCABULARY)


def identity_data(labels: tuple[int, ...] = (1, 1), gaps: tuple[float, ...] = (3.0, 2.0, 1.0)):  # type: ignore[no-untyped-def]
    """Orthonormal tokens and queries: every row is orthogonal to those of other sequences."""
    n, T = len(labels), len(gaps)
    d = n * T + n
    E = torch.eye(d, dtype=torch.float64)
    X = E[: n * T].reshape(n, T, d)
    v = torch.zeros(d, dtype=torch.float64)
    v[: n * T] = torch.tensor(gaps, dtype=torch.float64).repeat(n)
    y = torch.tensor(labels, dtype=torch.float64)
    v[: n * T] *= y.repeat_interleave(T)
    return am.AttentionData(X, E[n * T :], y, v)


def counterexample_to_theorem_4() -> am.AttentionData:
    """docs/errata.md: two tokens per sequence, so that B.2 holds, and a trap."""
    X = [[[-2.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]]
    return am.AttentionData(X, [[1.0, 0.0], [1.0, 0.0]], [1, 1], [3.0, 6.1])


def contradiction() -> am.AttentionData:
    """The same tokens and query with both labels: one wants the order that the other forbids."""
    X = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    return am.AttentionData(X, [[1.0, 1.0]] * 2, [1, -1], [1.0, 0.0])
