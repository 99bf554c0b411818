"""Next-token data and heads in the common training loop."""

import math

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.papers.c.data import ACYCLIC, Instances
from attnmargin.papers.c.lemmas import plain_loss
from attnmargin.papers.c.local import general_heads
from tests.instances import mixed_instances


def test_the_query_is_the_last_token() -> None:
    E = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
    data = am.graphs.next_token_data(E, [[0, 1, 2], [3], [2, 1]])
    torch.testing.assert_close(data.z, E[[2, 3, 1]])
    assert data.mask is not None
    assert data.mask.sum(-1).tolist() == [3, 1, 2]
    masked = am.graphs.next_token_data(
        E, [[0, 1, 2], [3], [2, 1]], np.array([[1, 0, 0]] * 3, dtype=bool)
    )
    torch.testing.assert_close(masked.z, E[[2, 3, 1]])
    assert masked.mask is not None
    assert masked.mask.sum(-1).tolist() == [1, 1, 1]


def test_scores_of_a_classifier_and_of_the_identity() -> None:
    E = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sequences, labels = [[0, 1, 2], [2, 2]], [1, 2]
    own = am.graphs.next_token_head(E, sequences, labels)
    assert own.scores.tolist() == [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    C = torch.linalg.pinv(E).mT  # C Eᵀ = I
    general = am.graphs.next_token_head(E, sequences, labels, C)
    torch.testing.assert_close(general.scores, own.scores)


def test_gradients_of_heads_agree_with_autograd() -> None:
    own = mixed_instances(3)
    data, head = own.data(), own.head()
    W = torch.randn(3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    G, log_scale = am.gradient(data, W, head=head, loss="log")
    at = W.clone().requires_grad_()
    total = sum(plain_loss(own.E[k], own.ids[k], own.labels[k], at[k]) for k in range(3))
    (wanted,) = torch.autograd.grad(total, at)  # type: ignore[arg-type]
    torch.testing.assert_close(log_scale.exp()[:, None, None] * G, wanted, rtol=1e-11, atol=1e-14)


def test_squared_loss_of_a_general_head_agrees_with_autograd() -> None:
    own = mixed_instances(2)
    C = general_heads(own.E, seed=1)
    head = am.graphs.next_token_head(own.E, own.ids, own.labels, C)
    W = torch.randn(2, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    at = W.clone().requires_grad_()
    total = at.new_zeros(())
    for k in range(2):
        X = own.E[k][own.ids[k]]
        s = torch.softmax((X @ at[k] @ X[:, -1].unsqueeze(-1)).squeeze(-1), -1)
        u = ((s.unsqueeze(-1) * X).sum(-2) * C[k][own.labels[k]]).sum(-1)
        total = total + ((1.0 - u) ** 2).mean()
    (wanted,) = torch.autograd.grad(total, at)
    G, log_scale = am.gradient(own.data(), W, head=head, loss="squared")
    torch.testing.assert_close(log_scale.exp()[:, None, None] * G, wanted, rtol=1e-10, atol=1e-14)


def test_compiled_training_equals_plain_autograd() -> None:
    own = mixed_instances(2)
    run = am.train(own.data(), head=own.head(), loss="log", lr=0.01, steps=100, record=100)
    for k in range(2):
        W = torch.zeros(8, 8, dtype=torch.float64)
        for _ in range(100):
            at = W.clone().requires_grad_()
            loss = plain_loss(own.E[k], own.ids[k], own.labels[k], at)
            (g,) = torch.autograd.grad(loss, at)
            W = W - 0.01 * g / torch.linalg.matrix_norm(g)
        torch.testing.assert_close(run.W[-1, k], W, rtol=1e-8, atol=1e-10)


def test_descent_meets_graph_svm_and_the_cyclic_correction() -> None:
    own = mixed_instances(20)
    run = am.train(own.data(), head=own.head(), loss="log", lr=0.01, steps=4000, record=4000)
    assert float(am.correlation(run.W[-1], own.solution().W).mean()) > 0.985
    parts = [am.graphs.cyclic_part(run.W[-1, k], own.E[k], g) for k, g in enumerate(own.graphs)]
    far = torch.linalg.matrix_norm(torch.stack(parts) - own.corrections())
    assert float(far.max()) < 0.01


def test_regularization_paths_of_acyclic_data() -> None:
    E, ids, labels = am.graphs.random_next_tokens(8, 8, 4, 6, trials=3, name="path", acyclic=True)
    graphs = [am.token_graphs(x, y, 8) for x, y in zip(ids, labels, strict=True)]
    own = Instances(E, ids, labels, graphs)
    path = am.regularization_path(own.data(), [10.0, 100.0, 1000.0], loss="log", head=own.head())
    off = am.measures.misalignment(path.W, own.solution().W)
    assert bool((off.diff(dim=0) < 0).all())
    assert float(off[-1].max()) < 1e-4


def test_a_batch_of_data_equals_its_loop() -> None:
    own = mixed_instances(3)
    together = am.train(own.data(), head=own.head(), loss="log", lr=0.01, steps=50)
    for k in range(3):
        data = am.graphs.next_token_data(own.E[k], own.ids[k])
        head = am.graphs.next_token_head(own.E[k], own.ids[k], own.labels[k])
        alone = am.train(data, head=head, loss="log", lr=0.01, steps=50)
        torch.testing.assert_close(together.W[:, k], alone.W)


def test_random_next_tokens_are_as_promised() -> None:
    E, ids, labels = am.graphs.random_next_tokens(
        8, 5, 4, 6, trials=50, name="sample", acyclic=True
    )
    torch.testing.assert_close(torch.linalg.vector_norm(E, dim=-1), torch.ones(50, 8).double())
    assert all(am.token_graphs(x, y, 8).acyclic for x, y in zip(ids, labels, strict=True))
    _, ids, labels = am.graphs.random_next_tokens(8, 5, 4, 6, trials=50, name="sample")
    assert bool((ids == labels.unsqueeze(-1)).any(-1).all())
    again = am.graphs.random_next_tokens(8, 5, 4, 6, trials=7, name="sample")[1]
    assert torch.equal(again, ids[:7])
    with pytest.raises(am.InputError, match="trials: got 0; needs a whole number of at least 1"):
        am.graphs.random_next_tokens(8, 5, 4, 6, trials=0)


def test_labels_from_the_vocabulary_need_not_occur() -> None:
    """Appendix D: labels are uniform over the vocabulary, tokens and embeddings are unchanged."""
    size = (5, 4, 6, 3)
    E, ids, _ = am.graphs.random_next_tokens(*size, trials=300, name="sample")
    other = am.graphs.random_next_tokens(*size, trials=300, name="sample", labels="vocabulary")
    assert torch.equal(other[0], E)
    assert torch.equal(other[1], ids)
    share = torch.bincount(other[2].flatten(), minlength=5) / 1800.0
    assert float((share - 0.2).abs().max()) < 0.04
    occurs = (ids == other[2].unsqueeze(-1)).any(-1).double().mean()
    assert float(occurs) == pytest.approx(1.0 - 0.8**3, abs=0.04)
    checks = am.theory.check_next_token(E[0], ids[0], other[2][0])
    found = {check.name: str(check.outcome) for check in checks}
    realisable = bool((ids[0] == other[2][0].unsqueeze(-1)).any(-1).all())
    assert found["Assumption 2"] == ("holds" if realisable else "fails")
    with pytest.raises(am.InputError, match="labels: got 'anywhere'; needs 'sequence' or"):
        am.graphs.random_next_tokens(*size, labels="anywhere")
    with pytest.raises(am.InputError, match="labels: got 'vocabulary' of acyclic data"):
        am.graphs.random_next_tokens(*size, acyclic=True, labels="vocabulary")


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_theorem_1_with_general_heads(loss: str) -> None:
    """Acyclic data, Assumption 3 alone, losses of Assumption 1: paths turn to (Acyc-SVM)."""
    E, ids, labels = am.graphs.random_next_tokens(8, 8, 4, 6, trials=3, name="path", acyclic=True)
    graphs = [am.token_graphs(x, y, 8) for x, y in zip(ids, labels, strict=True)]
    own, C = Instances(E, ids, labels, graphs), general_heads(E, seed=0)
    for k in range(3):
        checks = am.theory.check_next_token(E[k], ids[k], labels[k], C=C[k], loss=loss)
        (check,) = [check for check in checks if check.name == "Theorem 1"]
        assert str(check.outcome) == "holds"
    head = am.graphs.next_token_head(E, ids, labels, C)
    path = am.regularization_path(own.data(), [10.0, 100.0, 1000.0], loss=loss, head=head)
    off = am.measures.misalignment(path.W, own.solution().W)
    assert bool((off.diff(dim=0) < 0).all())
    assert float(off[-1].max()) < 1e-4


def test_theorem_2_with_another_loss() -> None:
    """Exponential loss, two of three labels: the path shares as W_cyc of that loss does."""
    E = torch.eye(3, dtype=torch.float64)
    sequences, labels = [[0, 1, 2]] * 3, [0, 0, 1]
    graphs = am.token_graphs(sequences, labels, 3)
    checks = am.theory.check_next_token(E, sequences, labels, loss="exponential")
    (check,) = [check for check in checks if check.name == "Theorem 2"]
    assert str(check.outcome) == "holds"
    data = am.graphs.next_token_data(E, sequences)
    head = am.graphs.next_token_head(E, sequences, labels)
    path = am.regularization_path(data, [5.0, 10.0, 20.0], loss="exponential", head=head)
    W_cyc = am.cyclic_correction(E, sequences, labels, graphs, "exponential")
    torch.testing.assert_close(check.numbers["‖W_cyc‖"], W_cyc.norm())
    far = torch.linalg.matrix_norm(am.graphs.cyclic_part(path.W, E, graphs) - W_cyc)
    assert bool((far.diff() < 0).all())
    assert float(far[-1]) < 1e-4
    W_mm = am.solve(am.graph_problem(E, graphs)).W
    assert float(am.measures.misalignment(path.W[-1], W_mm)) < 1e-2


def test_general_heads_satisfy_assumption_3() -> None:
    E = am.graphs.random_next_tokens(ACYCLIC.K, ACYCLIC.d, 4, 6, trials=5, name="heads")[0]
    C = general_heads(E, seed=0)
    assert torch.equal((C @ E.mT).argmax(-1), torch.arange(8).expand(5, 8))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: am.graphs.next_token_data([1.0], [[0]]), r"E: got shape \(1,\)"),
        (lambda: am.graphs.next_token_data(np.eye(2), [[0, 2]]), "sequences: got token id 2"),
        (
            lambda: am.graphs.next_token_head(np.eye(2), [[0, 1]], [0, 1]),
            r"labels: got shape \(2,\)",
        ),
        (
            lambda: am.graphs.next_token_head(np.eye(2), [[0, 1]], [2]),
            "labels: got labels from 2 to 2",
        ),
        (
            lambda: am.graphs.next_token_head(np.eye(2), [[0, 1]], [1], np.eye(3)),
            r"C: got shape \(3, 3\); needs a classifier",
        ),
        (lambda: am.heads.ScoreHead([1.0]), "scores: got shape"),
        (
            lambda: am.train(
                am.graphs.next_token_data(np.eye(2), [[0, 1]]), head=am.heads.ScoreHead([[1.0]])
            ),
            r"scores: got shape \(1, 1\); needs one score per token",
        ),
        (
            lambda: am.train(
                am.random_data(2, 3, 4), parameter="KQ", fixed=torch.zeros(1, 4, 4).double()
            ),
            "fixed: got directions; needs gradient descent on W",
        ),
        (
            lambda: am.train(am.random_data(2, 3, 4), fixed=torch.zeros(4, 4).double()),
            r"fixed: got shape \(4, 4\)",
        ),
        (
            lambda: am.regularization_path(
                am.random_data(2, 3, 4), [1.0], head=am.heads.ReLUHead(np.eye(4))
            ),
            "head: got a ReLUHead; needs a linear head",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(am.InputError, match=words):
        call()


def test_the_log_loss_survives_a_start_that_suppresses_the_label() -> None:
    """A label 1,000 logits below the rest: the probability underflows, its logarithm does not."""
    E = torch.eye(3, dtype=torch.float64)
    sequences, labels = [[0, 1, 2], [1, 0, 2]], [0, 0]
    data, head = (
        am.graphs.next_token_data(E, sequences),
        am.graphs.next_token_head(E, sequences, labels),
    )
    W = torch.zeros(3, 3, dtype=torch.float64)
    W[:, 2] = torch.tensor([-1000.0, 0.0, -2000.0])
    G, log_scale = am.gradient(data, W, head=head, loss="log")
    wanted = torch.zeros(3, 3, dtype=torch.float64)
    wanted[:, 2] = torch.tensor([-1.0, 1.0, 0.0])  # s − 1 at the label, s elsewhere
    torch.testing.assert_close(G * log_scale.exp(), wanted)
    run = am.train(data, head=head, loss="log", lr=1.0, steps=2000, record=1000, init=W)
    assert run.loss[0] == pytest.approx(1000.0)
    assert bool(torch.isfinite(run.W).all())
    assert run.selection[-1].tolist() == [0, 1]
    torch.testing.assert_close(run.W[1], plain_steps(data, head, W, 1000), atol=1e-8, rtol=1e-10)


def plain_steps(
    data: am.AttentionData, head: am.heads.ScoreHead, W: torch.Tensor, steps: int
) -> torch.Tensor:
    """Normalised steps by the gradient of the torch code."""
    for _ in range(steps):
        G, _ = am.gradient(data, W, head=head, loss="log")
        W = W - G / torch.linalg.matrix_norm(G)
    return W


def test_ragged_sequences_with_a_batch_of_embeddings() -> None:
    E = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sequences, labels = [[0, 1], [2], [1, 0, 2]], [0, 2, 1]
    data, head = (
        am.graphs.next_token_data(E, sequences),
        am.graphs.next_token_head(E, sequences, labels),
    )
    run = am.train(data, head=head, loss="log", steps=20)
    for k in range(2):
        own = am.graphs.next_token_data(E[k], sequences)
        alone = am.train(
            own, head=am.graphs.next_token_head(E[k], sequences, labels), loss="log", steps=20
        )
        torch.testing.assert_close(run.W[:, k], alone.W)
    with pytest.raises(am.InputError, match=r"mask: got shape \(1, 3\); needs \(2, 3, 3\)"):
        am.graphs.next_token_data(E, sequences, [[True, True, True]])
    with pytest.raises(am.InputError, match="batch dimensions: got E"):
        am.graphs.next_token_head(E, sequences, [labels] * 3)
    with pytest.raises(am.InputError, match="sequences: got no token"):
        am.graphs.next_token_data(E[0], [[0, 1], []])


def test_nothing_moves_where_everything_is_fixed() -> None:
    E, ids, labels = am.graphs.random_next_tokens(5, 4, 4, 3, name="fixed")
    data, head = am.graphs.next_token_data(E, ids), am.graphs.next_token_head(E, ids, labels)
    everything = torch.eye(16, dtype=torch.float64).reshape(16, 4, 4)
    run = am.train(data, head=head, loss="log", steps=50, fixed=everything)
    assert float(run.W.abs().max()) < 1e-12


def test_fixed_directions_in_float32() -> None:
    for trial in range(10):
        E, ids, labels = am.graphs.random_next_tokens(5, 4, 4, 3, name="fixed", seed=trial)
        held = torch.outer(E[ids[0, 0]], E[ids[0, -1]]).unsqueeze(0)
        runs = []
        for dtype in (torch.float32, torch.float64):
            table = E.to(dtype)
            data = am.graphs.next_token_data(table, ids)
            head = am.graphs.next_token_head(table, ids, labels)
            run = am.train(data, head=head, loss="log", steps=20, fixed=held.to(dtype))
            runs.append(run.W[-1].double())
        torch.testing.assert_close(*runs, atol=1e-4, rtol=1e-4)


def test_paths_say_where_the_minimum_is_inside() -> None:
    E = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    sequences, labels = [[0, 1]] * 3, [0, 0, 1]
    data, head = (
        am.graphs.next_token_data(E, sequences),
        am.graphs.next_token_head(E, sequences, labels),
    )
    path = am.regularization_path(data, [0.1, 1.0], loss="log", head=head)
    assert "at radius 1 the least loss of 1 of 1 trials lies inside of the ball" in path.notes[-1]
    # Both tokens have the logits ±W with the query −1: s = 2/3 at e^{−2W} = 2.
    torch.testing.assert_close(path.W[-1], torch.tensor([[-math.log(2.0) / 2]]).double())
    short = am.regularization_path(data, [0.1], loss="log", head=head)
    assert short.notes == ()
