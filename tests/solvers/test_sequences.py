"""Rows that are never built, against the same rows built."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.solvers.sequences.chunk import Chunk
from attnmargin.solvers.sequences.kept import no_rows
from attnmargin.solvers.sequences.passes import Passes, Wanted
from attnmargin.solvers.sequences.search import to_the_end
from attnmargin.solvers.sequences.source import as_source

NORMS: list[str | float] = ["fro", "nuc", 1.75]
KINDS = ("plain", "masked", "sets", "several", "sets of several", "repeated", "far", "one token")
# So few rows join in a pass, and so few numbers are in memory.
FEW: dict[str, Any] = {"rows": 4, "numbers": 60}

Arrays = tuple[Tensor, ...]


def drawn(kind: str, seed: int) -> Arrays:
    """Draw X, z, selection and mask of some kind, feasible or not."""
    random = np.random.default_rng(seed)
    n, T, d, K = (int(random.integers(a, b)) for a, b in ((1, 8), (2, 7), (1, 6), (2, 4)))
    T = 1 if kind == "one token" else T
    shape = (n, K) if "several" in kind else (n,)
    X = random.normal(size=(n, T, d))
    z = random.normal(size=(*shape, d))
    if kind == "repeated":
        X = X[:, random.integers(T, size=T)].round()
    if kind == "far":
        X += 1e8 * random.normal(size=(n, 1, d))
        X = X.round(2)
    score = np.einsum("n...d,de,nte->n...t", z, random.normal(size=(d, d)), X)
    selection = score.argmax(-1)
    if random.random() < 0.3:
        selection = random.integers(T, size=shape)
    chosen = np.eye(T, dtype=bool)[selection]
    mask = np.ones_like(chosen)
    if kind == "masked":
        mask = (random.random(chosen.shape) < 0.6) | chosen
        mask[random.random(n) < 0.2] = False
    if "sets" in kind:
        selection = chosen | (random.random(chosen.shape) < 0.2)
    return tuple(torch.from_numpy(x) for x in (X, z, selection, mask))


def large(n: int = 60, T: int = 21, d: int = 12, seed: int = 0) -> Arrays:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    X = torch.nn.functional.normalize(X, dim=-1)
    W = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return X, X[:, 0], torch.einsum("ntd,de,ne->nt", X, W, X[:, 0]).argmax(-1)


def items(arrays: Arrays) -> list[Arrays]:
    return list(zip(*arrays, strict=True))


def check_agreement(found: am.Solution, built: am.Solution) -> None:
    if "inaccurate" in (found.status, built.status):
        assert not bool(found.optimal) or not bool(built.infeasible)
        assert not bool(built.optimal) or not bool(found.infeasible)
        return
    assert found.status == built.status
    if built.status == "optimal":
        assert float(found.value) == pytest.approx(float(built.value), rel=1e-9, abs=1e-300)
        proof = am.certify(built.problem, built.norm, found.W, torch.zeros(built.problem.M))
        assert float(found.certificate.primal) == pytest.approx(float(proof.primal), abs=1e-15)
        assert float(proof.upper) == pytest.approx(float(found.certificate.upper), rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None, max_examples=60)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), as_items=st.booleans())
def test_it_agrees_with_rows_that_are_built(
    norm: str | float, kind: str, seed: int, as_items: bool
) -> None:
    arrays = drawn(kind, seed)
    built = am.solve(am.token_problem(*arrays), norm)
    source = items(arrays) if as_items else arrays
    check_agreement(am.solve_sequences(source, norm, **FEW), built)
    check_agreement(am.solve_sequences(source, norm), built)


@pytest.mark.parametrize("norm", [*NORMS, 3.0, "spectral", "max"])
def test_few_rows_decide_many(norm: str | float) -> None:
    arrays = large()
    built = am.solve(am.token_problem(*arrays), norm)
    found = am.solve_sequences(arrays, norm, rows=100, numbers=2000).raise_for_status()
    assert float(found.value) == pytest.approx(float(built.value), rel=1e-9)
    assert found.problem.M + found.outside == 1200
    assert found.problem.M < 600
    names, X = found.problem.names, arrays[0]
    left = X[names.sequence, names.chosen] - X[names.sequence, names.other]
    assert torch.equal(found.problem.left, left)
    assert torch.equal(names.chosen, arrays[2][names.sequence])
    wide = {(int(i), int(t)) for i, t in zip(names.sequence, names.other, strict=True)}
    support = built.problem.names
    for row in built.support.nonzero().flatten().tolist():
        assert (int(support.sequence[row]), int(support.other[row])) in wide


def test_every_source_gives_the_same(tmp_path: Path) -> None:
    X, z, selection = large()
    for name, array in zip(("X", "z", "selection"), (X, z, selection), strict=True):
        np.save(tmp_path / f"{name}.npy", array.numpy())
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    sources: list[Any] = [
        (X.numpy(), z.numpy(), selection.numpy()),
        (mapped, z, selection),
        (X.tolist(), z.tolist(), selection.tolist()),
        tmp_path,
        str(tmp_path),
        items((X, z, selection)),
        TensorDataset(X, z, selection),
        Again((X, z, selection)),
    ]
    found = [am.solve_sequences(source, rows=100, numbers=5000) for source in sources]
    assert all(torch.equal(own.W, found[0].W) for own in found)
    assert all(own.status == "optimal" for own in found)


class Again:
    """Sequences without a length, again and again."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def __iter__(self) -> Iterator[Arrays]:
        return iter(items(self.arrays))


def test_lengths_and_numbers_of_queries_may_differ() -> None:
    X = large()[0]
    own: list[Any] = []
    for i in range(60):
        T = 3 + i % 19
        K = i % 3
        chosen = X[i, :T] @ X[i, :T].T
        query = X[i, :K] if K else X[i, 0]
        own.append((X[i, :T], query, chosen[:K].argmax(-1) if K else chosen[0].argmax()))
    found = am.solve_sequences(own, rows=50, numbers=2000).raise_for_status()
    rows = []
    for X_i, z_i, alpha in own:
        problem = am.token_problem(X_i[None], z_i[None], alpha[None])
        rows.append((problem.left, problem.right))
    left, right = (torch.cat(x) for x in zip(*rows, strict=True))
    built = am.solve(am.margin_problem(left, right))
    assert float(found.value) == pytest.approx(float(built.value), rel=1e-12)
    assert found.problem.M + found.outside == len(left)
    assert set(found.problem.names.position.tolist()) == {-1, 0, 1}


def test_chunks_do_not_change_a_bit() -> None:
    arrays = large()
    several = (arrays[0], arrays[0][:, :5], (arrays[0][:, :5] @ arrays[0].mT).argmax(-1))
    found = [am.solve_sequences(several, rows=200, numbers=k) for k in (30, 3000, 10**7)]
    for own in found:
        assert own.status == "optimal"
        assert float(own.value) == pytest.approx(float(found[0].value), rel=1e-12)


def test_single_precision_is_converted_chunk_by_chunk() -> None:
    X, z, selection = large()
    found = am.solve_sequences((X.float(), z.float(), selection), rows=100, numbers=2000)
    exact = am.solve(am.token_problem(X.float().double(), z.float().double(), selection))
    assert found.W.dtype == torch.float64
    assert float(found.value) == pytest.approx(float(exact.value), rel=1e-12)


def test_a_common_offset_costs_no_accuracy() -> None:
    """Multiples of 2⁻²⁰, so that the offset changes no difference."""
    X, z, _ = large()
    X = (X * 2**20).round() / 2**20
    queries = z.unsqueeze(1).expand(-1, 1, -1)
    several = torch.cat((queries, X[:, 1:4]), 1)
    selection = (X @ several.mT).argmax(1)
    near = am.solve_sequences((X, several, selection), rows=100, numbers=2000)
    far = am.solve_sequences((X + 2.0**30, several, selection), rows=100, numbers=2000)
    assert torch.equal(near.W, far.W)
    values = [chunk_of(x, several, selection).missing(near.W) for x in (X, X + 2.0**30)]
    torch.testing.assert_close(*values, rtol=1e-12, atol=1e-12)


def chunk_of(*arrays: Tensor) -> Chunk:
    (chunk,) = as_source(arrays).chunks(10**6)
    return chunk


def test_values_of_rows_far_apart_are_those_of_rows_that_are_built() -> None:
    """One query's token is far away from all others: differences, not logits."""
    X = large(4, 6, 3)[0]
    X[:, 0] += 1e17
    several = X[:, 1:4]
    chosen = torch.arange(3).expand(4, 3)
    chunk = chunk_of(X, several, chosen)
    W = torch.eye(3, dtype=torch.float64)
    problem = am.token_problem(X, several, chosen)
    missing = chunk.missing(W)[chunk.exists]
    torch.testing.assert_close(missing, 1.0 - problem.apply(W), rtol=1e-12, atol=1e-12)


def test_contradictions_are_named() -> None:
    X, z, selection = large()
    z[41], X[41], selection[41] = z[7], X[7], (selection[7] + 1) % 21
    solution = am.solve_sequences((X, z, selection), rows=50, numbers=2000)
    assert solution.status == "infeasible"
    assert solution.outside > 0
    assert float(solution.dual @ solution.problem.bound) == pytest.approx(1.0)
    with pytest.raises(am.InfeasibleError, match=r"sequence 7 wants .*sequence 41"):
        solution.raise_for_status()


def test_a_token_like_the_selected_one_is_named() -> None:
    X, z, selection = large()
    X[33, 5] = X[33, selection[33]]
    selection[33] = 5
    missing = chunk_of(X, z, selection).missing(torch.eye(12, dtype=torch.float64))
    assert int(torch.isinf(missing).logical_and(missing > 0).sum()) == 1
    for norm in NORMS:
        with pytest.raises(am.InfeasibleError, match=r"sequence 33 wants .* tokens are equal"):
            am.solve_sequences((X, z, selection), norm, rows=50).raise_for_status()


def test_nothing_to_solve() -> None:
    X, z, selection = large(3)
    for mask in (torch.zeros(3, 21, dtype=torch.bool), None):
        own = X if mask is not None else X[:, :1]
        chosen = selection if mask is not None else selection * 0
        for rows in (1, 100):
            solution = am.solve_sequences((own, z, chosen, mask)[: 4 if mask is not None else 3],
                                          rows=rows)  # fmt: skip
            assert (solution.status, float(solution.value), solution.outside) == ("optimal", 0.0, 0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("most", [0, 1, 3, 6, 9])
def test_ended_at_any_moment_it_returns_what_is_certified(norm: str | float, most: int) -> None:
    arrays, seen = large(), []

    def look(*numbers: float) -> bool:
        seen.append(numbers)
        return len(seen) > most

    solution = am.solve_sequences(arrays, norm, progress=look, rows=100, numbers=2000)
    assert {rows for rows, *_ in seen} == {1200}
    whole = am.token_problem(*arrays)
    check = am.certify(whole, norm, solution.W, torch.zeros(1200))
    assert float(check.upper) == pytest.approx(float(solution.certificate.upper), rel=1e-12)
    best = float(am.solve(whole, norm).value)
    assert float(solution.certificate.lower) <= best * (1 + 1e-9)
    assert float(check.upper) >= best * (1 - 1e-9)
    assert solution.status in ("inaccurate", "optimal")


def test_a_time_limit_ends_it() -> None:
    solution = am.solve_sequences(large(), time_limit=0, rows=100)
    assert solution.status == "inaccurate"
    assert solution.problem.M == 100


def test_the_best_so_far_satisfies_all_rows() -> None:
    arrays, rounds = large(), []

    def look(rows: int, support: int, gap: float) -> bool:
        rounds.append(gap)
        return len(rounds) > 5

    solution = am.solve_sequences(arrays, progress=look, rows=300)
    assert bool(solution.feasible)
    assert 0 < float(solution.certificate.gap) < 1


def test_the_exact_method_ends_what_block_ascent_does_not() -> None:
    problem = am.token_problem(*large())
    for rounds in (0, 2):
        seen: list[float] = []

        def look(_: int, __: int, gap: float, seen: list[float] = seen, most: int = rounds) -> bool:
            seen.append(gap)
            return len(seen) > most

        found = am.solve(problem, method="blocks", progress=look)
        ended = to_the_end(found)
        assert (found.status, ended.status) == ("inaccurate", "optimal")
        assert to_the_end(ended) is ended


def test_a_pass_wants_the_worst_rows_of_each_query() -> None:
    arrays = large(10, 8, 4)
    passes = Passes(as_source(arrays), 100)
    W = torch.eye(4, dtype=torch.float64)
    missing = 1.0 - am.token_problem(*arrays).apply(W)
    seen = passes.look(W, no_rows(4), Wanted(12, 2, torch.inf))
    each = missing.reshape(10, 7).topk(2).values.flatten()
    torch.testing.assert_close(seen.missing.sort().values, each.topk(12).values.flip(0))
    assert seen.worst == pytest.approx(float(missing.max()))
    again = passes.look(W, seen.rows, Wanted(12, 2, torch.inf))
    assert not set(again.rows.key.tolist()) & set(seen.rows.key.tolist())


def test_a_saved_solution_says_what_it_leaves_out(tmp_path: Path) -> None:
    solution = am.solve_sequences(large(), rows=100)
    loaded = am.Solution.load(solution.save(tmp_path / "solution.npz"))
    assert loaded.outside == solution.outside > 0
    assert loaded.status == "optimal"
    assert f"{solution.problem.M} of 1200 rows" in repr(loaded)
    kept = loaded.to("cpu")
    assert kept.outside == solution.outside


def test_another_nuclear_solution_may_violate_rows_left_out() -> None:
    """W₁₁ ≥ 1, W₂₂ ≥ 1 leave W₁₂ open; a third row does not."""
    X = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]).double()
    problem = am.token_problem(X, X[:, 0], [0, 0])
    whole = am.solve(problem, "nuc")
    assert am.uniqueness(whole) == "not unique"
    part = am.Solution(whole.problem, whole.norm, whole.W, whole.dual, whole.certificate,
                       whole.iterations, outside=1)  # fmt: skip
    assert am.uniqueness(part) == "open"


class Shrinking(Dataset[Arrays]):
    """A data set that loses its last sequence after some passes."""

    def __init__(self, passes: int) -> None:
        self.items, self.left = items(large()), passes

    def __len__(self) -> int:
        self.left -= 1
        return 60 if self.left >= 0 else 59

    def __getitem__(self, i: int) -> Arrays:
        return self.items[i]


class Changing(Shrinking):
    """A data set whose tokens change after some passes."""

    def __len__(self) -> int:
        super().__len__()
        return 60

    def __getitem__(self, i: int) -> Arrays:
        X, *rest = self.items[i]
        return (X if self.left >= 0 else X.roll(1, 0), *rest)


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_source_that_changes_its_length(passes: int) -> None:
    words = r"sequences: got 60 sequences with 1200 rows in one pass, 59 with 1180 in another; "
    with pytest.raises(InputError, match=rf"^{words}needs the same in every pass$"):
        am.solve_sequences(Shrinking(passes), rows=100)


def test_a_source_that_changes_its_numbers() -> None:
    with pytest.raises(InputError, match=r"^sequences: got other numbers in sequence .* earlier"):
        am.solve_sequences(Changing(2), rows=100, time_limit=0)


X, Z, S, M = (torch.rand(5, 4, 3), torch.rand(5, 3), torch.zeros(5, dtype=torch.int64),
              torch.ones(5, 4, dtype=torch.bool))  # fmt: skip
HIDDEN = M.clone()
HIDDEN[3, 0] = False
BAD: list[tuple[Any, str]] = [
    (7, "sequences: got a int; needs a tuple"),
    ({"X": X}, "sequences: got a dict; needs a tuple"),
    (iter([]), "sequences: got a list_iterator; needs a tuple"),
    (X, "sequences: got a Tensor; needs a tuple"),
    ((X, Z), "sequences: got 2 parts; needs"),
    ([], "sequences: got no sequence; needs at least one"),
    ([(X[0], Z[0])], "sequence 0: got 2 parts; needs"),
    ((X[0], Z, S), r"X: got shape \(4, 3\); needs tokens \(n, T, d\)"),
    ((X, Z[:4], S), r"z: got shape \(4, 3\); needs queries \(5, 3\) or"),
    ((X, Z, S[:3]), r"selection: got shape \(3,\); needs \(5,\) whole numbers"),
    ((X, Z, S, M[:, :2]), r"mask: got shape \(5, 2\); needs \(5, 4\)$"),
    ((X, Z, S + 9), "selection: got tokens from 9 to 9 in sequence 0; needs tokens from 0 to 3"),
    ((X, Z, S, HIDDEN), "selection: got a token that the mask hides in sequence 3; needs visible"),
    ((X, Z, torch.zeros(5, 4, dtype=torch.bool)), "selection: got no token in sequence 0"),
    ((X.half(), Z, S), "X: got torch.float16"),
    ([(X[0], Z[0], 0), (X[1], Z[1, :2], 0)], r"z: got shape \(2,\) in sequence 1; needs \(3,\)"),
    ([(X[0], Z[0], 0), (X[1, 0], Z[1], 0)], r"X: got shape \(3,\) in sequence 1"),
    ([(X[0], Z[0], 0), (X[1], Z[1], 4)], "selection: got tokens from 4 to 4 in sequence 1"),
    ([(X[0], Z[0], 0), (X[1], Z[1], [0])], r"selection: got shape \(1,\) in sequence 1; needs"),
    ([(X[0], Z[0], 0, M[0, :2])], r"mask: got shape \(2,\) in sequence 0; needs shape \(4,\)$"),
    ([(X[0], Z[0], 0), (X[1, :, :2], Z[1, :2], 0)], "X: got tokens of width 2 in sequence 1"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "words"), BAD)
def test_bad_sources_get_one_sentence(source: Any, words: str) -> None:
    with pytest.raises(InputError, match=rf"^{words}"):
        am.solve_sequences(source)


@pytest.mark.parametrize("as_items", [False, True])
def test_a_number_that_is_none_names_its_sequence(as_items: bool) -> None:
    arrays = large()
    arrays[0][37, 3, 2] = torch.nan
    source = items(arrays) if as_items else arrays
    with pytest.raises(InputError, match=r"^X: got nan in sequence 37; needs finite numbers"):
        am.solve_sequences(source, numbers=1000)
    mask = torch.ones(60, 21, dtype=torch.bool)
    mask[37, 3] = False
    source = items((*arrays, mask)) if as_items else (*arrays, mask)
    assert am.solve_sequences(source, rows=100).status == "optimal"


def test_folders_that_are_not_whole(tmp_path: Path) -> None:
    arrays = large()
    with pytest.raises(InputError, match=r"^sequences: got .*none, which does not exist; needs"):
        am.solve_sequences(tmp_path / "none")
    np.save(tmp_path / "X.npy", arrays[0].numpy())
    with pytest.raises(InputError, match=r"z.npy, which does not exist; needs a folder with X"):
        am.solve_sequences(tmp_path)
    (tmp_path / "z.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"^sequences: got .*z.npy \(.*\); needs a plain array$"):
        am.solve_sequences(tmp_path)
    with pytest.raises(InputError, match=r"X.npy, which is a file; needs a folder"):
        am.solve_sequences(tmp_path / "X.npy")


def test_bad_options() -> None:
    with pytest.raises(InputError, match=r"^norm: got 'trace'"):
        am.solve_sequences(large(), "trace")
    with pytest.raises(InputError, match=r"^rows: got 0; needs"):
        am.solve_sequences(large(), rows=0)
    with pytest.raises(InputError, match=r"^time_limit: got -1"):
        am.solve_sequences(large(), time_limit=-1)
