"""
What comes next: read off a graph, then trained
===============================================

The data set is small and has a cycle. One layer of self-attention is trained on it; its next-token
distribution is that of the automaton, which needs no training (paper C).
"""

from typing import TYPE_CHECKING

import torch

import attnmargin as am

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def main() -> "Figure":
    words = ["sun", "rain", "wind", "and"]
    sequences = [["sun", "rain", "and"], ["rain", "sun", "and"], ["sun", "rain", "wind", "and"]]
    labels = ["sun", "rain", "sun"]

    graphs = am.token_graphs(sequences, labels, words)
    names = [[words[k] for k in part] for part in graphs["and"].components]
    print(f"after “and”, from the highest priority down: {names}")

    ids = [[words.index(word) for word in row] for row in sequences]
    answers = [words.index(word) for word in labels]
    E = torch.eye(len(words), dtype=torch.float64)
    data, head = am.graphs.next_token_data(E, ids), am.graphs.next_token_head(E, ids, answers)
    run = am.train(data, head=head, loss="log", lr=0.01, steps=20_000, record=20_000)

    prompt = ["wind", "rain", "sun", "and"]
    asked = am.graphs.next_token_data(E, [[words.index(word) for word in prompt]])
    trained = am.probabilities(asked, run.W[-1])[0]
    answer = am.graphs.Automaton(graphs).next(prompt)
    print(f"automaton: {answer}")
    print(
        "trained:   "
        + ", ".join(f"{w} {float(p):.4f}" for w, p in zip(prompt, trained, strict=True))
    )
    return am.plot.graph(graphs, "and")


if __name__ == "__main__":
    figure = main()
