"""What training of a linear decoder ends in: closed forms, second implementations, brute force."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import attnmargin as am
from attnmargin.decoders import NextWords, finite_part, next_words, random_next_words
from attnmargin.decoders.subspace import inside


def narrow(trials: int | None = None) -> NextWords:
    return random_next_words(5, 3, 6, 2, trials, name="narrow")


def test_rows_are_differences_of_logits() -> None:
    data = narrow()
    W = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a, p = data.contexts @ W.mT, data.probabilities
    rows, equations = data.problem.apply(W), data.equations.apply(W)
    expected = [a[j, int(p[j].gt(0).nonzero()[0])] - a[j, v] for j in range(5) for v in range(6)
                if v != int(p[j].gt(0).nonzero()[0])]  # fmt: skip
    torch.testing.assert_close(rows, torch.stack(expected))
    torch.testing.assert_close(equations, torch.stack(expected))
    assert bool((data.problem.equality == data.equations.mask).all())
    wanted = data.equations.bound[data.equations.mask]
    ratios = [p[j][p[j] > 0] for j in range(5)]
    torch.testing.assert_close(wanted, torch.stack([(own[0] / own[1]).log() for own in ratios]))


def test_the_max_margin_decoder_by_cvxpy() -> None:
    cvxpy: Any = import_module("cvxpy")
    data = random_next_words(4, 5, 6, 3, name="cvxpy")
    h, follows = data.contexts.numpy(), data.follows.numpy()
    W = cvxpy.Variable((6, 5))
    a, rows = h @ W.T, []
    for j in range(4):
        inner, outer = np.flatnonzero(follows[j]), np.flatnonzero(~follows[j])
        rows += [a[j, z] == a[j, inner[0]] for z in inner[1:]]
        rows += [a[j, z] - a[j, v] >= 1 for z in inner for v in outer]
    value = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(W, "fro")), rows).solve(solver="CLARABEL")
    solution = am.solve(data.problem).raise_for_status()
    assert float(solution.value) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(solution.W.numpy(), W.value, atol=1e-5)


def test_separability_is_that_of_a_linear_program() -> None:
    data = random_next_words(6, 3, 6, 2, 20, name="linprog")
    found = am.solve(data.problem)
    for k in range(20):
        problem = data.problem[k]
        right = problem.right
        A = (problem.left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(1).numpy()
        tied = problem.equality.numpy()
        answer = linprog(np.zeros(18), -A[~tied], -np.ones((~tied).sum()), A[tied],
                         np.zeros(tied.sum()), bounds=(None, None))  # fmt: skip
        assert bool(found.optimal[k]) == (answer.status == 0)
        assert bool(found.infeasible[k]) == (answer.status == 2)
    assert 0 < int(found.optimal.sum()) < 20


def test_gradients_are_those_of_autograd() -> None:
    data = random_next_words(5, 4, 7, 3, 3, name="autograd")
    generator = torch.Generator().manual_seed(1)
    W = torch.randn(3, 7, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(data.loss(W).sum(), W)
    torch.testing.assert_close(data.gradient(W.detach()), expected, rtol=0, atol=1e-12)


def test_the_loss_is_the_entropy_at_its_infimum() -> None:
    data = random_next_words(4, 6, 7, 3, name="entropy")
    found = am.decoders.predict_decoder(data)
    assert found.verdict == "compatible and separable"
    W = found.finite.W + 60.0 * found.solution.W
    torch.testing.assert_close(data.loss(W), data.entropy, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.infimum, data.entropy)
    assert bool(data.loss(found.finite.W) > data.entropy + 1e-3)


def test_newton_finds_the_solution_of_the_equations() -> None:
    data = random_next_words(4, 6, 7, 3, 10, name="newton")
    found, exact = finite_part(data), am.solve(data.equations)
    off = (found.W - exact.W).norm(dim=(-2, -1))
    assert bool((off <= found.error + 1e-12).all())
    assert float(found.error.max()) < 1e-9
    assert float(found.excess.abs().max()) < 1e-12


def test_without_compatibility_the_finite_part_is_a_minimum() -> None:
    """Four contexts on a line: brute force over the coordinates of the span."""
    data = next_words([[1.0], [2.0]], [[1, 3, 0], [1, 1, 0]])
    found = am.decoders.predict_decoder(data)
    assert found.verdict == "separable, not compatible"
    assert bool(found.infimum > data.entropy + 0.01)
    x = torch.linspace(-3.0, 3.0, 60_001, dtype=torch.float64)
    a = x[:, None] * torch.tensor([1.0, 2.0], dtype=torch.float64)
    p = torch.tensor([0.25, 0.5], dtype=torch.float64)
    weight = torch.tensor([2.0, 1.0], dtype=torch.float64) / 3.0
    values = -(weight * (p * torch.sigmoid(a).log() + (1 - p) * torch.sigmoid(-a).log())).sum(-1)
    assert float(found.finite.W[0] - found.finite.W[1]) == pytest.approx(
        float(x[values.argmin()]), abs=2e-4
    )
    assert float(found.infimum) == pytest.approx(float(values.min()), abs=1e-8)
    assert found.explain().startswith("separable, not compatible; not compatible, since contexts")


def test_the_bound_on_the_error_holds() -> None:
    """Before Newton has converged, the bound covers the distance to the end."""
    from attnmargin.decoders import finite

    data = random_next_words(4, 6, 7, 3, name="bound")
    exact = finite_part(data).W
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite, "_MOST", 4)
        early = finite_part(data)
    off = float((early.W - exact).norm())
    assert 1e-9 < off <= float(early.error) < 100 * off


def test_the_span_is_orthogonal_to_the_max_margin_decoder() -> None:
    data = narrow(20)
    solution, span = am.solve(data.problem), inside(data)
    good = solution.optimal
    assert bool(good.any())
    assert float(span.coordinates(solution.W)[good].abs().max()) < 1e-10
    W = torch.randn(20, 6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    part = span.part(W)
    torch.testing.assert_close(span.part(part), part)


def test_contradictions_name_contexts_and_words() -> None:
    same = am.next_token_problem([[1.0, 2.0], [1.0, 2.0]], [[1, 0], [0, 1]])
    with pytest.raises(am.InfeasibleError) as caught:
        am.solve(same).raise_for_status()
    assert str(caught.value) == (
        "infeasible: context 0 wants word 0 over word 1, context 1 the reverse, "
        "with the same embedding"
    )
    lines = ["a b", "a c", "d c", "d e"]
    counted = am.decoders.count_words(line.split() for line in lines)
    data = counted.embedded(table=[[1.0], [2.0]])
    words = am.decoders.predict_decoder(data).explain()
    assert words == (
        "compatible, not separable; not separable, since contexts 'a' and 'd' contradict each "
        "other: no W satisfies these 3 rows together: -1 × ('a' wants words 'b' and 'c' level) "
        "+ 1 × ('a' wants word 'b' over word 'e') + -0.5 × ('d' wants words 'c' and 'e' level) "
        "reads 0 ≥ 1"
    ).replace("('a'", "(context 'a'").replace("('d'", "(context 'd'")


def test_a_zero_embedding_is_named() -> None:
    with pytest.raises(am.InfeasibleError, match="but its embedding is zero"):
        am.solve(am.next_token_problem([[0.0]], [[1, 0]])).raise_for_status()


def test_counts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("the cat sat on the mat\nthe dog sat\n\nthe cat ran\n")
    found = am.decoders.read_words(path)
    place = found.contexts.index(("the",))
    own = dict(zip(found.words, found.counts[place].tolist(), strict=True))
    assert own == {"cat": 2, "dog": 1, "mat": 1, "on": 0, "ran": 0, "sat": 0, "the": 0}
    data = found.embedded()
    assert data.names is not None
    assert data.names[0] == "the"
    assert am.decoders.predict_decoder(data).verdict == "compatible and separable"
    two = am.decoders.read_words(path, order=2, most=1)
    assert two.contexts == (("the", "cat"),)
    assert dict(zip(two.words, two.counts[0].tolist(), strict=True)) == {"ran": 1, "sat": 1}
    torch.testing.assert_close(data.weight, torch.from_numpy(found.counts.sum(1) / 9.0))


def test_a_batch_is_its_loop_and_dtype_is_kept() -> None:
    data = narrow(4)
    whole = am.decoders.predict_decoder(data)
    for k in range(4):
        alone = am.decoders.predict_decoder(data[k])
        torch.testing.assert_close(alone.finite.W, whole.finite.W[k], rtol=0, atol=1e-12)
        assert alone.verdict == whole.verdict[k]
        torch.testing.assert_close(alone.infimum, whole.infimum[k], equal_nan=True)
    single = am.next_token_problem(data.contexts.float(), data.probabilities.float())
    assert single.left.dtype == torch.float32


def test_same_seed_same_bits() -> None:
    one, two = narrow(3), narrow(5)
    assert torch.equal(one.contexts, two.contexts[:3])
    assert torch.equal(one.probabilities, two.probabilities[:3])


@pytest.mark.parametrize(
    ("contexts", "counts", "words"),
    [
        ([1.0], [[1, 0]], r"contexts: got shape \(1,\)"),
        ([[1.0]], [[1]], r"probabilities: got shape \(1, 1\)"),
        ([[1.0]], [[1, 0], [0, 1]], r"needs \(\*B, 1, V\)"),
        ([[1.0]], [[1, -1]], "probabilities: got -1; needs numbers that are not negative"),
        ([[1.0], [2.0]], [[1, 0], [0, 0]], "no word after context 1"),
    ],
)
def test_bad_arguments(contexts: Any, counts: Any, words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.next_token_problem(contexts, counts)


def test_other_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="follow: got 6 of 6 words"):
        random_next_words(2, 2, 6, 6)
    with pytest.raises(am.InputError, match="words: got 1 of them"):
        next_words([[1.0]], [[1, 1]], words=("a",))
    with pytest.raises(am.InputError, match="lines: got 1 words that follow 1 others"):
        am.decoders.count_words([["a", "b"]])
    with pytest.raises(am.InputError, match="file: got"):
        am.decoders.read_words(tmp_path / "none.txt")
