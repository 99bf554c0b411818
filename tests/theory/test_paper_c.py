"""Checks of paper C on data where the answer is known."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd.functional import hessian

import attnmargin as am
from attnmargin.papers.c.data import Instances
from attnmargin.papers.c.lemmas import plain_loss
from attnmargin.papers.c.local import general_heads
from tests.instances import mixed_instances


def outcomes(checks: list[am.theory.Check]) -> dict[str, str]:
    return {check.name: str(check.outcome) for check in checks}


def found(checks: list[am.theory.Check], name: str) -> am.theory.Check:
    return next(check for check in checks if check.name == name)


def logistic_loss(E: Tensor, C: Tensor, ids: Tensor, labels: Tensor, W: Tensor) -> Tensor:
    """Write out (ERM) with the logistic loss."""
    X = E[ids]
    s = torch.softmax((X @ W @ X[:, -1].unsqueeze(-1)).squeeze(-1), -1)
    u = ((s.unsqueeze(-1) * X).sum(-2) * C[labels]).sum(-1)
    return torch.log1p(torch.exp(-u)).mean()


def test_lemma_1_is_written_out() -> None:
    E, ids, labels = am.graphs.random_next_tokens(8, 8, 4, 6, name="lemma 1", acyclic=True)
    C = general_heads(E.unsqueeze(0), seed=0)[0]
    check = found(am.theory.check_next_token(E, ids, labels, C=C, loss="logistic"), "Lemma 1")
    assert str(check.outcome) == "holds"
    best = torch.log1p(torch.exp(-(C * E).sum(-1)[labels])).mean()
    torch.testing.assert_close(check.numbers["L⋆"], best)
    W = am.solve(am.graph_problem(E, am.token_graphs(ids, labels, 8))).W
    for name, at in (("L(0) − L⋆", 0.0 * W), ("L(R W_mm) − L⋆ at R = 30", 30.0 * W)):
        wanted = logistic_loss(E, C, ids, labels, at) - best
        torch.testing.assert_close(check.numbers[name], wanted, rtol=1e-9, atol=1e-15)
        assert float(check.numbers[name]) > 0.0
    generator = torch.Generator().manual_seed(0)
    for size in (0.1, 1.0, 10.0, 100.0):
        W = size * torch.randn(8, 8, dtype=torch.float64, generator=generator)
        assert float(logistic_loss(E, C, ids, labels, W)) > float(best)


def test_lemma_1_needs_a_token_besides_the_label() -> None:
    """docs/errata.md: where every sequence repeats its label, every W has the loss L⋆."""
    check = found(am.theory.check_next_token(np.eye(2), [[0, 0]], [0], loss="logistic"), "Lemma 1")
    assert (str(check.outcome), float(check.numbers["L(0) − L⋆"])) == ("fails", 0.0)


def test_theorems_3_and_4_need_small_steps() -> None:
    own = mixed_instances(1)
    data = (own.E[0], own.ids[0], own.labels[0])
    L = 2.0 * 4**0.5 * float(torch.linalg.svdvals(own.E[0])[0]) ** 4
    for lr, word in (("auto", "holds"), (1.0 / L, "holds"), (1.01 / L, "fails")):
        checks = am.theory.check_next_token(*data, lr=lr)
        for name in ("Theorem 3", "Theorem 4"):
            assert str(found(checks, name).outcome) == word
            assert float(found(checks, name).numbers["1/L"]) == pytest.approx(1.0 / L)
    for bad in ("fast", 0.0, -1.0, None):
        with pytest.raises(am.InputError, match="lr: got"):
            am.theory.check_next_token(*data, lr=bad)  # type: ignore[arg-type]


def test_theorem_4_by_autograd() -> None:
    """W_mm rises everywhere, the gradient is L-Lipschitz, and descent with 1/L never stops."""
    own = mixed_instances(3)
    generator = torch.Generator().manual_seed(0)
    for k in range(3):
        data = (own.E[k], own.ids[k], own.labels[k])
        check = found(am.theory.check_next_token(*data), "Theorem 4")
        W_mm = own.solution().W[k]
        loss = partial(plain_loss, *data)
        zero = torch.zeros(8, 8, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(loss(zero), zero)
        torch.testing.assert_close(check.numbers["−⟨∇L(0), W_mm⟩"], -(g * W_mm).sum())
        W = 5.0 * torch.randn(8, 8, dtype=torch.float64, generator=generator)
        at = W.clone().requires_grad_()
        assert float((torch.autograd.grad(loss(at), at)[0] * W_mm).sum()) < 0.0
        H = hessian(loss, W).reshape(64, 64)
        assert float(torch.linalg.eigvalsh(H)[-1]) * float(check.numbers["1/L"]) <= 1.0


def cyclic_loss(own: Instances, k: int, W: Tensor) -> Tensor:
    """Write out the loss of Definition 3."""
    data = am.graphs.cyclic_data(own.ids[k], own.labels[k], own.graphs[k])
    total = W.new_zeros(())
    for x, y, last in zip(data.sequences, data.labels, data.last, strict=True):
        logits = own.E[k][x] @ W @ own.E[k][int(last)]
        total = (
            total
            + torch.logsumexp(logits, 0)
            - torch.logsumexp(logits[torch.tensor(x) == int(y)], 0)
        )
    return total / len(data.labels)


def test_lemma_7_by_hessians() -> None:
    own = mixed_instances(4)
    for k, basis in enumerate(own.bases()):
        data = (own.E[k], own.ids[k], own.labels[k])
        check = found(am.theory.check_next_token(*data), "Lemma 7")
        W = own.corrections()[k]
        span = basis[basis.flatten(1).any(-1)].flatten(1)
        H = hessian(partial(cyclic_loss, own, k), W).reshape(64, 64)
        least = torch.linalg.eigvalsh(span @ H @ span.mT)[0]
        assert str(check.outcome) == "holds"
        torch.testing.assert_close(check.numbers["least curvature on S_cyc"], least)
        torch.testing.assert_close(check.numbers["‖W_cyc‖"], W.norm())
        assert float(least) > 0.0
    other = am.theory.check_next_token(own.E[0], own.ids[0], own.labels[0], loss="logistic")
    assert str(found(other, "Lemma 7").outcome) == "fails"


def test_checks_of_general_data() -> None:
    own = mixed_instances(1)
    checks = am.theory.check_next_token(own.E[0], own.ids[0], own.labels[0])
    found = outcomes(checks)
    assert found["Theorem 3"] == found["Lemma 2"] == found["Lemma 3"] == "holds"
    assert found["Acyclicity"] == found["Theorem 1"] == "fails"
    assert found["Assumption 1"] == found["Theorem 2"] == "fails"  # the slope of −log u
    squared = outcomes(
        am.theory.check_next_token(own.E[0], own.ids[0], own.labels[0], loss="squared")
    )
    assert squared["Assumption 1"] == squared["Theorem 2"] == "fails"  # no slope at the score 1
    assert squared["Theorem 3"] == "fails"
    strict = am.theory.check_next_token(np.eye(3), [[0, 1, 2], [1, 2]], [0, 1], loss="logistic")
    assert outcomes(strict)["Theorem 1"] == outcomes(strict)["Theorem 2"] == "holds"


def test_checks_name_what_is_wrong() -> None:
    missing = am.theory.check_next_token(np.eye(3), [[0, 1]], [2])
    assert outcomes(missing)["Assumption 2"] == "fails"
    assert outcomes(missing)["Lemma 2"] == "not decidable here"
    wide = am.graphs.random_next_tokens(
        9, 4, 5, 4, name="wide"
    )  # nine tokens cannot be independent
    assert outcomes(am.theory.check_next_token(*wide))["Assumption 4"] == "fails"
    head = am.theory.check_next_token(np.eye(3), [[0, 1]], [0], C=np.eye(3)[[1, 0, 2]])
    assert outcomes(head)["Assumption 3"] == outcomes(head)["Assumption 4"] == "fails"
    same = am.theory.check_next_token(np.ones((2, 2)), [[0, 1]], [0])
    assert outcomes(same)["(Graph-SVM) is feasible"] == outcomes(same)["Theorem 3"] == "fails"
    twins = am.theory.check_next_token(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0, 2]], [0], loss="logistic"
    )
    assert outcomes(twins)["Assumption 3"] == outcomes(twins)["Theorem 1"] == "fails"
    alone = am.theory.check_next_token(np.eye(2), [[0, 0]], [0])
    assert outcomes(alone)["Theorem 3"] == "fails"  # nothing dominates anything
    with pytest.raises(am.InputError, match=r"C: got shape \(2, 2\)"):
        am.theory.check_next_token(np.eye(3), [[0, 1]], [0], C=np.eye(2))


@pytest.mark.parametrize(
    ("labels", "word"),
    [([0, 1], "holds"), ([0, 0, 1, 1, 0, 1], "holds"), ([0, 0, 1], "fails")],
)
def test_theorem_2_on_cyclic_data(labels: list[int], word: str) -> None:
    """Logistic loss: two tokens wanted equally often are shared, otherwise the share runs to one.

    2 ℓ(t) + ℓ(1 − t) falls up to t = 1, where its slope is −2 σ(−1) + σ(0) < 0.
    """
    sequences = [[0, 1, 2]] * len(labels)
    check = found(
        am.theory.check_next_token(np.eye(3), sequences, labels, loss="logistic"), "Theorem 2"
    )
    assert str(check.outcome) == word
    if word == "holds":
        assert float(check.numbers["‖W_cyc‖"]) == pytest.approx(0.0, abs=1e-9)


def test_theorem_2_says_where_a_finite_correction_is_not_known() -> None:
    """Three tokens in one component, with three different bags to choose from."""
    sequences, labels = [[0, 3, 1, 2], [0, 0, 1, 2], [1, 1, 0, 2]], [0, 1, 2]
    assert am.token_graphs(sequences, labels, 4).size.max() == 3
    checks = am.theory.check_next_token(np.eye(4), sequences, labels, loss="logistic")
    assert str(found(checks, "Theorem 2").outcome) == "not decidable here"
    squared = am.theory.check_next_token(np.eye(4), sequences, labels, loss="squared")
    assert str(found(squared, "Theorem 2").outcome) == "fails"  # Assumption 1 fails already


def test_odd_embeddings_and_classifiers() -> None:
    found = am.theory.check_next_token(torch.zeros(3, 3), [[0, 1]], [0])
    outcomes = {check.name: str(check.outcome) for check in found}
    assert outcomes["(Graph-SVM) is feasible"] == outcomes["Theorem 3"] == "fails"
    with pytest.raises(am.InputError, match="C: got nan"):
        am.theory.check_next_token(torch.eye(3), [[0, 1]], [0], C=torch.full((3, 3), torch.nan))
