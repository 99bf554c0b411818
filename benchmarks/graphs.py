"""Paper C: graphs of large corpora against networkx, and training against the papers' way.

    python -m benchmarks.graphs

A corpus is sequences of 20 tokens from a vocabulary of 10,000 with Zipf's frequencies; the label is
one of the tokens. networkx gets the same arrays and builds one graph per last token, with its
components and condensation. The papers' way to train is autograd on one data set at a time, 4,000
steps for W and as many for W_cyc; ours are 100 data sets at once, the same steps, and W_cyc by
Newton too. Peak memory is that of the process.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import attnmargin as am
from attnmargin.papers.c.data import GENERAL, Instances, mixed
from attnmargin.papers.c.data import draw as draw_instances
from attnmargin.papers.engine.experiment import Task
from benchmarks.harness import RESULTS, machine, save

K, LENGTH, STEPS = 10_000, 20, 4000
Ids = NDArray[np.int64]


def corpus(tokens: int) -> tuple[Ids, Ids]:
    """Sequences and labels with so many tokens."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, K + 1)
    sequences = rng.choice(K, size=(tokens // LENGTH, LENGTH), p=share / share.sum())
    place = rng.integers(0, LENGTH, len(sequences))
    return sequences, sequences[np.arange(len(sequences)), place]


def _ours(sequences: Ids, labels: Ids) -> dict[str, int]:
    graphs = am.token_graphs(sequences, labels, K)
    return {"edges": len(graphs.source), "components": len(graphs.size)}


def _networkx(sequences: Ids, labels: Ids) -> dict[str, int]:
    import networkx as nx

    found: dict[int, Any] = {}
    for row, label in zip(sequences.tolist(), labels.tolist(), strict=True):
        graph = found.setdefault(row[-1], nx.DiGraph())
        graph.add_edges_from((label, token) for token in row)
    edges = sum(sum(i != j for i, j in graph.edges) for graph in found.values())
    condensed = [nx.condensation(graph) for graph in found.values()]
    return {"edges": edges, "components": sum(len(graph) for graph in condensed)}


WAYS: dict[str, Callable[[Ids, Ids], dict[str, int]]] = {
    "attnmargin": _ours,
    "networkx": _networkx,
}


def build(way: str, tokens: int) -> dict[str, Any]:
    """One way in this process: seconds, peak memory, and what was found."""
    given = corpus(tokens)
    start = time.perf_counter()
    found = WAYS[way](*given)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"way": way, "tokens": tokens, "seconds": seconds, "peak GB": peak, **found}


def apart(way: str, tokens: int) -> dict[str, Any]:
    """The same in a process of its own, so that memory is its own."""
    words = [sys.executable, "-m", "benchmarks.graphs", "--way", way, "--tokens", str(tokens)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    print(f"{way:<11} {tokens:>11,} tokens {row['seconds']:8.1f} s {row['peak GB']:6.2f} GB")
    return row


def papers_way(own: Instances, steps: int) -> None:
    """One data set: autograd, normalised steps, for W and again for W_cyc on the cyclic data."""
    E, ids, labels = own.E[0], own.ids[0], own.labels[0]
    C = torch.linalg.pinv(E).mT
    data = am.graphs.cyclic_data(ids, labels, own.graphs[0])
    whole = [(E[x], E[x[-1]], C[y]) for x, y in zip(ids, labels, strict=True)]
    rows = zip(data.sequences, data.last, data.labels, strict=True)
    _descend(whole, steps)
    _descend([(E[x], E[int(last)], C[int(y)]) for x, last, y in rows], steps)


def _descend(samples: list[tuple[Tensor, Tensor, Tensor]], steps: int) -> None:
    d = samples[0][0].shape[-1]
    W = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([W], lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.zeros((), dtype=torch.float64)
        for X, z, c in samples:
            s = torch.softmax(X @ W @ z, dim=0)
            loss = loss - torch.log(c @ (X.T @ s))
        (loss / len(samples)).backward()
        assert W.grad is not None
        W.grad /= torch.linalg.norm(W.grad)
        optimiser.step()


def ours(own: Instances) -> None:
    """All data sets: the same steps for W and on the cyclic data, and Newton for W_cyc."""
    from attnmargin.papers.c.local import inside_mask

    head = own.head()
    am.train(own.data(), head=head, loss="log", lr=0.01, steps=STEPS, record=STEPS)
    mask = inside_mask(own.graphs, own.ids, own.labels)
    cyclic = am.graphs.next_token_data(own.E, own.ids, mask)
    am.train(cyclic, head=head, loss="log", lr=0.01, steps=STEPS, record=STEPS)
    own.corrections()
    own.solution()


def training(trials: int) -> dict[str, Any]:
    task = Task({}, trials, 0, lambda k, steps: None)
    own = draw_instances("benchmark", GENERAL, task, mixed)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        ours(own)
        times.append(time.perf_counter() - start)
    fast = min(times[1:]) / trials
    few = STEPS // 10
    start = time.perf_counter()
    papers_way(own, few)
    slow = (time.perf_counter() - start) * STEPS / few
    print(
        f"training: {fast * 1e3:.2f} ms a data set, papers' way {slow:.2f} s: {slow / fast:.0f} ×"
    )
    return {"seconds a data set": fast, "papers' way": slow, "ratio": slow / fast, "trials": trials,
            "steps": STEPS}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--way", choices=list(WAYS))
    parser.add_argument("--tokens", type=int, default=1_000_000)
    chosen = parser.parse_args()
    if chosen.way:
        print(json.dumps(build(chosen.way, chosen.tokens)))
        return
    rows = [apart(way, tokens) for tokens in (100_000, 1_000_000) for way in WAYS]
    rows.append(apart("attnmargin", 10_000_000))
    for first, second in zip(rows[:4:2], rows[1:4:2], strict=True):
        assert (first["edges"], first["components"]) == (second["edges"], second["components"])
        print(f"{first['tokens']:,} tokens: {second['seconds'] / first['seconds']:.0f} × networkx")
    record = {**machine(), "vocabulary": K, "graphs": rows, "training": training(100)}
    save(record, chosen.out / "graphs.json")


if __name__ == "__main__":
    main()
