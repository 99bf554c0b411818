"""Read off a graph what attention learns from next-token data, and train to compare.

The data set is small and has a cycle. The example trains one layer of self-attention on it and
prints its next-token distribution beside the automaton's, which needs no training. Run it:

    python examples/next_token.py
"""

import torch

import attnmargin as am


def main() -> None:
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


if __name__ == "__main__":
    main()
