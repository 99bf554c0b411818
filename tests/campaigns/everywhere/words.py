"""Next tokens, deciding tokens, and a small classifier of texts."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

import attnmargin as am
from tests.campaigns.everywhere.place import Answers, Place, named
from tests.texts import one_word_decides, pieces, shape


def graphs(place: Place) -> Answers:
    """Build graphs, solve Graph-SVM, correct cycles, and predict the next token."""
    found: Answers = {}
    for k in range(3 if place.small else 12):
        cyclic = k % 2 == 0
        drawn = am.graphs.random_next_tokens(6, 8, 6, 4, name="everywhere", seed=k,
                                             acyclic=not cyclic)  # fmt: skip
        found |= named(f"graphs {k}", _graph(place, *drawn))
    return found


def _graph(place: Place, E: Any, sequences: Any, labels: Any) -> dict[str, Any]:
    graphs = am.token_graphs(sequences, labels, 6)
    own = E.to(place.device)
    solution = am.solve(am.graph_problem(own, graphs))
    rule = am.graphs.Automaton(graphs, own)
    nexts = [rule.next(row) for row in sequences.tolist()]
    return {
        "status": np.atleast_1d(solution.status), "value": solution.value, "W": solution.W,
        "correction": am.cyclic_correction(own, sequences, labels, graphs),
        "rule": np.array([str(own.rule) for own in nexts]),
        "distribution": torch.stack([own.distribution for own in nexts]),
        "generated": np.array(rule.generate(sequences[0].tolist(), 12, seed=3)),
    }  # fmt: skip


def importance(place: Place) -> Answers:
    """Count tokens by class, and take the first step of paper D."""
    counted = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1, stem=False))
    statistics = am.embeddings.important_tokens(8, 5, seed=3).statistics()
    data = am.embeddings.important_tokens(8, 5, seed=3)
    step = am.embeddings.first_step(am.embeddings.random_embeddings(data, 64, seed=3), 1.0)
    del place
    return named("tokens", {
        "alpha": counted.statistics.alpha, "names": np.array(counted.pieces.vocabulary),
        "kind": np.array(statistics.kind), "error of E": step.error_E, "error of p": step.error_p,
    })  # fmt: skip


def classifier(place: Place) -> Answers:
    """Train a small classifier in float32: rounding differs, so only the first epochs compare.

    Without dropout, whose masks PyTorch draws, others in other versions.
    """
    own = pieces()
    recipe = am.text.Recipe(p=1.5, lr=1e-3, batch=20, epochs=2, stop=1.1)
    run = am.text.train_text(own, own, replace(shape(own), dropout=0.0), recipe)
    del place
    losses = np.array([row["loss"] for row in run.history], np.float32)
    return named("classifier", {"loss": losses})
