"""One check of embeddings: every function that takes them refuses them in the same words."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.data.embeddings import embedded, embedding_table

SEQUENCES, LABELS = [[0, 1], [1, 0]], [0, 1]
GRAPHS = am.token_graphs(SEQUENCES, LABELS, 2)
USES: dict[str, tuple[Callable[[Any], object], str]] = {
    "embedding problem": (lambda E: am.embedding_problem(E, SEQUENCES, LABELS), "(*B, K, d)"),
    "next-token data": (lambda E: am.graphs.next_token_data(E, SEQUENCES), "(*B, K, d)"),
    "next-token head": (lambda E: am.graphs.next_token_head(E, SEQUENCES, LABELS), "(*B, K, d)"),
    "graph problem": (lambda E: am.graph_problem(E, GRAPHS), "(*B, 2, d)"),
    "graph problems": (lambda E: am.graph_problem(E, [GRAPHS]), "(*B, 2, d)"),
    "cyclic basis": (lambda E: am.graphs.cyclic_basis(E, GRAPHS), "(2, d)"),
    "automaton": (lambda E: am.graphs.Automaton(GRAPHS, E), "(2, d)"),
    "model": (
        lambda E: am.embeddings.EmbeddingModel(E, [0.0], [1.0], SEQUENCES, [1, -1]),
        "(K, d)",
    ),
    "theory": (lambda E: am.theory.check_next_token(E, SEQUENCES, LABELS), "(K, d)"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("shape", [(3,), (2, 0)])
def test_wrong_embeddings_get_the_same_sentence(use: str, shape: tuple[int, ...]) -> None:
    call, needs = USES[use]
    words = re.escape(f"E: got shape {shape}; needs embeddings {needs}")
    with pytest.raises(am.InputError, match=f"^{words}$"):
        call(np.ones(shape))


@pytest.mark.parametrize("use", [name for name, (_, needs) in USES.items() if "B" not in needs])
def test_batches_are_refused_where_there_is_none(use: str) -> None:
    call, needs = USES[use]
    words = re.escape(f"E: got shape (5, 2, 2); needs embeddings {needs}")
    with pytest.raises(am.InputError, match=f"^{words}$"):
        call(np.ones((5, 2, 2)))


def test_the_size_of_the_vocabulary_and_numbers() -> None:
    assert embedding_table(np.ones((5, 2, 3)), 2).shape == (5, 2, 3)
    with pytest.raises(am.InputError, match=r"got shape \(3, 2\); needs embeddings \(\*B, 2, d\)"):
        embedding_table(np.ones((3, 2)), 2)
    with pytest.raises(am.InputError, match="E: got nan at"):
        embedding_table([[np.nan]])


def test_ids_are_looked_up_in_batches() -> None:
    table = torch.arange(12.0).reshape(2, 3, 2)
    ids = torch.tensor([[0, 2], [1, 1]])
    found = embedded(table, ids)
    assert torch.equal(found, torch.stack([member[ids] for member in table]))
    assert torch.equal(embedded(table[0], ids), table[0][ids])
    with pytest.raises(am.InputError, match="batch dimensions: got E"):
        embedded(table, ids.expand(5, 2, 2))
