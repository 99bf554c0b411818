"""Exhaustive search for the locally optimal selections of an instance.

The search builds selections sequence by sequence. If tokens are too narrow for every selection to
be feasible (paper A, Theorem 8), an infeasible prefix excludes all its continuations. If there are
too many selections, the search climbs from random ones: it replaces a selected token by a support
token of higher score, as training would do.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import barrier, high_tokens, low_tokens, optimal_tokens, scores
from attnmargin.attention.softmax import sequences
from attnmargin.base.checks import check_kind
from attnmargin.base.compiled import can_compile, one_thread
from attnmargin.base.display import Summarised, range_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import token_problem
from attnmargin.margin.certificate import Status
from attnmargin.margin.norms import Frobenius, Norm, as_norm
from attnmargin.margin.solution import Solution
from attnmargin.selections.local_optimality import Locality, locality
from attnmargin.selections.walk import Walked, walk
from attnmargin.solvers.entry import solve

# Numbers that the rows of one batched solve may have together.
_CHUNK = 1 << 19
# Selections solved one by one without being asked for more, for problems of 32 rows; for larger
# ones as many as take the same time. Norms that need an interior-point method take ten times as
# long. Where all are visited with one Gram matrix, it may be more of them: ten seconds.
_LIMIT, _ROWS, _SLOWER = 100_000, 32, 10
_WALKED, _WALKED_ROWS = 1_000_000, 54
# A support token of high score stands level with the best low one, up to this share of the margin.
_LEVEL = 1e-7
# Selections near the optimal one that are decided together.
_NEAR = 32
# Random selections that a climb begins with.
_STARTS = 256


@final
@dataclass(frozen=True, eq=False, repr=False)
class Search(Summarised):
    """The result of a search of one instance."""

    selections: Tensor  # int (S, n): locally optimal, the optimal tokens first, then by margin
    marginal: Tensor  # int (·, n): not locally optimal, yet nothing that is needed pulls away
    solution: Solution  # of these S selections
    searched: int  # selections that are decided
    total: int  # selections that exist
    feasible: int  # selections among those decided that have a solution
    without_optimal_support: int  # exceptions to paper A, Assumption D
    without_all_optimal_support: int  # exceptions to its stronger form
    outside_cone: int  # exceptions to paper A, Lemma 5

    def summary(self) -> dict[str, str]:
        """Return how much was searched, and what was found, by name."""
        return {
            "locally optimal selections": str(len(self.selections)),
            "searched": f"{self.searched:,} of {count_words(self.total)}",
            "margin": range_words(self.margin),
        }

    @property
    def complete(self) -> bool:
        """Whether every selection is decided."""
        return self.searched == self.total

    @property
    def margin(self) -> Tensor:
        """Margin ``1/‖W‖`` of each selection, ``(S,)``."""
        return self.solution.margin

    def to(self, device: torch.device | str) -> "Search":
        """Move to a device."""
        parts = {name: getattr(self, name).to(device) for name in ("selections", "marginal")}
        return replace(self, solution=self.solution.to(device), **parts)

    def __contains__(self, selection: Tensor) -> bool:
        known = torch.cat((self.selections, self.marginal))
        return bool((known == selection).flatten(1).all(-1).any())

    def within(self, sets: Tensor) -> Tensor:
        """Tell which selections choose from sets ``(n, T)`` only, bool ``(S,)``."""
        own = sets.gather(-1, self.selections.movedim(0, -1)).movedim(-1, 0)
        return own.flatten(1).all(-1)

    def __str__(self) -> str:
        count = len(self.selections)
        return (
            f"{count} locally optimal selection{'s' if count != 1 else ''}; "
            f"searched {self.searched:,} of {count_words(self.total)}"
        )


def count_words(count: int) -> str:
    """Write a number of selections in words."""
    return f"{count:,}" if count < 10**9 else f"about 1e{int(math.log10(count))}"


@final
class _Tally:
    """Collects what a search finds."""

    def __init__(self, data: AttentionData, norm: Norm) -> None:
        self.data, self.norm, self.best = data, norm, optimal_tokens(data)
        self.selections: list[Tensor] = []
        self.marginal: list[Tensor] = []
        self.searched = self.feasible = 0
        self.no_support = self.not_all_support = self.outside = 0

    def decide(self, selections: Tensor) -> Locality:
        """Solve selections ``(S, n)`` and count them."""
        found = locality(self.data, selections, self.norm)
        known = ~found.undecided & ~found.doubtful.flatten(1).any(-1)
        self.searched += int(known.sum())
        self.feasible += int(found.feasible.sum())
        self._count_optimal_support(selections, found, known)
        apart = self._inside_cone(selections, found) != found.local
        self.outside += int((apart & known).sum())
        if bool(found.local.any()):
            self.selections.append(selections[found.local])
        if bool(found.marginal.any()):
            self.marginal.append(selections[found.marginal])
        return found

    def add(self, found: Walked) -> None:
        """Count what a walk over all selections has decided."""
        self.searched += found.searched
        self.feasible += found.feasible
        self.no_support += found.no_support
        self.not_all_support += found.not_all_support
        self.outside += found.outside

    def _count_optimal_support(self, selections: Tensor, found: Locality, known: Tensor) -> None:
        best = self.best.expand_as(selections)
        guards = found.support.gather(-1, best.unsqueeze(-1))[..., 0].flatten(1)
        other = (selections != best).flatten(1)
        asked = known & found.feasible & other.any(-1)
        self.no_support += int((asked & ~(guards & other).any(-1)).sum())
        self.not_all_support += int((asked & (other & ~guards).any(-1)).sum())

    def _inside_cone(self, selections: Tensor, found: Locality) -> Tensor:
        """Decide whether W_α is in the cone of Definition 3 for some ε > 0."""
        data = self.data
        W = found.solution.W.where(found.feasible[:, None, None], 0.0)
        flat = sequences(data)
        keys = torch.einsum("sde,ne->snd", W, flat.z[0])
        a = torch.einsum("ntd,snd->snt", flat.relative[0], keys)
        masks = (f(data, selections).flatten(1, -2) for f in (low_tokens, high_tokens))
        wall = barrier(a, *masks)
        return found.feasible & (wall > _LEVEL)

    def result(self, total: int) -> Search:
        """Return the locally optimal selections in order, with their solutions."""
        found = torch.cat((self.best[None][:0], *self.selections))
        solution = self._solve(found)
        first = (found == self.best).flatten(1).all(-1)
        order = torch.argsort(torch.where(first, -1.0, solution.value), stable=True)
        counts = (self.feasible, self.no_support, self.not_all_support, self.outside)
        marginal = torch.cat((self.best[None][:0], *self.marginal))
        return Search(found[order], marginal, solution[order], self.searched, total, *counts)

    def _solve(self, selections: Tensor) -> Solution:
        if len(selections) == 0:
            return self._solve(self.best[None])[:0]
        return solve(token_problem(self.data.X, self.data.z, selections, self.data.mask), self.norm)


@one_thread
def local_selections(
    data: AttentionData,
    norm: str | float | Norm = "fro",
    *,
    limit: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Find all locally optimal selections of one instance (paper A, Definition 2).

    Args:
        data: one instance, without batch dimensions. Equal tokens of a sequence count once.
        norm: of the directions: "fro", "nuc" or a number p > 1.
        limit: how many selections may be solved; by default what takes some seconds, a million
            selections of 54 rows for the Frobenius norm. If there are more, the search climbs from
            random selections, and its ``searched`` is less than its ``total``.
        seed: of the random selections.
        progress: called with the number of selections decided, and of all to be decided.

    Returns:
        A :class:`Search`: the selections with their solutions, the optimal tokens first.

    Example:
        >>> import attnmargin as am
        >>> found = am.selections.local_selections(am.random_data(3, 4, 3, name="search"))
        >>> print(found)
        5 locally optimal selections; searched 64 of 64
    """
    check_kind("data", data, AttentionData)
    if data.batch_shape:
        raise InputError("data", repr(data), "one instance, such as data[0]")
    norm, data = as_norm(norm), merge_copies(data).data
    visible = _visible(data)
    total = math.prod(len(tokens) for tokens in visible)
    check_limit(limit)
    tally = _Tally(data, norm)
    report = progress or (lambda done, all: None)
    if total <= (_walked(visible, norm) if limit is None else limit):
        for chunk in _all(data, visible, tally, report):
            tally.decide(chunk)
            report(tally.searched, total)
    else:
        _climb(tally, visible, _solved(visible, norm) if limit is None else limit, seed, report)
    return tally.result(total)


@one_thread
def only_local(data: AttentionData, norm: Norm, *, limit: int | None = None) -> bool:
    """Decide whether the optimal tokens of one instance are known to be the only local selection.

    As :func:`local_selections`, but the search ends at the first other one that it finds.
    """
    data = merge_copies(data).data
    visible, tally = _visible(data), _Tally(data, norm)
    check_limit(limit)
    most = _solved(visible, norm) if limit is None else limit
    if math.prod(len(tokens) for tokens in visible) > most:
        return False
    if not bool(tally.decide(tally.best[None]).local):
        return False
    near = _neighbours(tally.best, visible)
    for chunk in chain(near.split(_NEAR), _all(data, visible, tally)):
        other = (chunk != tally.best).flatten(1).any(-1)
        found = tally.decide(chunk[other])
        known = ~found.undecided & ~found.doubtful.flatten(1).any(-1)
        if bool((found.local | found.marginal | ~known).any()):
            return False
    return True


def _neighbours(best: Tensor, visible: list[Tensor]) -> Tensor:
    """List the selections that differ from this one in one token, ``(S, n)``."""
    rows = [best.flatten()]
    for i, tokens in enumerate(visible):
        for token in tokens.tolist():
            rows.append(best.flatten().clone())
            rows[-1][i] = token
    return torch.stack(rows).reshape(-1, *best.shape)


def check_limit(limit: int | None) -> None:
    """Raise InputError unless a limit is a number of selections, or None."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InputError("limit", f"{limit!r}", "a number of selections, at least 1")


def _solved(visible: list[Tensor], norm: Norm) -> int:
    """How many selections are solved one by one without being asked for more."""
    rows = sum(len(tokens) - 1 for tokens in visible)
    share = min(1.0, (_ROWS / max(rows, 1)) ** 2)
    slower = 1 if isinstance(norm, Frobenius) else _SLOWER
    return max(int(_LIMIT * share / slower), 64)


def _walked(visible: list[Tensor], norm: Norm) -> int:
    """How many selections are all visited without being asked for more."""
    if not (isinstance(norm, Frobenius) and can_compile()):
        return _solved(visible, norm)
    rows = sum(len(tokens) - 1 for tokens in visible)
    return max(int(_WALKED * min(1.0, (_WALKED_ROWS / max(rows, 1)) ** 2)), 64)


def _visible(data: AttentionData) -> list[Tensor]:
    """List the tokens that each query can select."""
    seen = torch.isfinite(scores(data)).reshape(-1, data.T)
    tokens = [row.nonzero().flatten() for row in seen]
    return [places if len(places) else places.new_zeros(1) for places in tokens]


def _chunk(data: AttentionData) -> int:
    """Choose how many selections to solve at once."""
    queries = data.z.shape[:-1].numel()
    return max(_CHUNK // (queries * data.T * data.d), 16)


def _all(
    data: AttentionData, visible: list[Tensor], tally: _Tally, report: Progress | None = None
) -> Iterator[Tensor]:
    """Yield all selections ``(S, n)`` that a walk does not decide; without one, all there are."""
    if not (isinstance(tally.norm, Frobenius) and can_compile() and data.X.device.type == "cpu"):
        yield from _enumerate(data, visible, tally)
        return
    found = walk(data, visible, _LEVEL, report)
    tally.add(found)
    open_ones = (found.begun < 0).any(-1)
    for part in found.begun[~open_ones].split(_chunk(data)):
        yield part.reshape(-1, *data.z.shape[:-1])
    for row in found.begun[open_ones]:
        begun = row[row >= 0].unsqueeze(0)
        for part in _extend(data, visible, begun, data.z.ndim == data.X.ndim, tally):
            yield part.reshape(-1, *data.z.shape[:-1])


def _enumerate(data: AttentionData, visible: list[Tensor], tally: _Tally) -> Iterator[Tensor]:
    """Yield all selections that no infeasible prefix excludes, in chunks ``(S, n)``."""
    inner = data.z.shape[:-1]
    sure = data.d >= max(data.T - 1, len(visible)) or data.z.ndim == data.X.ndim
    start = torch.zeros(1, 0, dtype=torch.int64, device=data.X.device)
    for chunk in _extend(data, visible, start, sure, tally):
        yield chunk.reshape(-1, *inner)


def _extend(
    data: AttentionData, visible: list[Tensor], begun: Tensor, sure: bool, tally: _Tally
) -> Iterator[Tensor]:
    """Continue selections of the first sequences ``(S, k)`` to all ``(·, n)``, depth first."""
    k, n, size = begun.shape[1], len(visible), _chunk(data)
    if k == n:
        yield begun
        return
    longer = torch.cartesian_prod(torch.arange(len(begun), device=begun.device), visible[k])
    longer = torch.cat((begun[longer[:, 0]], longer[:, 1:]), 1)
    if not sure and k + 1 < n:
        kept = longer[_feasible(data, longer)]
        tally.searched += (len(longer) - len(kept)) * math.prod(len(x) for x in visible[k + 1 :])
        longer = kept
    for part in longer.split(size):
        if len(part):
            yield from _extend(data, visible, part, sure, tally)


def _feasible(data: AttentionData, begun: Tensor) -> Tensor:
    """Decide whether selections of the first sequences are feasible, bool ``(S,)``."""
    k = begun.shape[1]
    mask = None if data.mask is None else data.mask[:k]
    solution = solve(token_problem(data.X[:k], data.z[:k], begun, mask))
    return torch.as_tensor(np.asarray(solution.status) != Status.INFEASIBLE)


def _climb(tally: _Tally, visible: list[Tensor], most: int, seed: int, report: Progress) -> None:
    """Decide up to ``most`` selections: random ones, and those that they lead to."""
    generator = torch.Generator().manual_seed(seed_of("search", base=seed))
    seen: set[tuple[int, ...]] = set()
    step = min(_chunk(tally.data), _STARTS, most)
    batch = torch.cat((tally.best.reshape(1, -1), _random(visible, step - 1, generator)))
    while len(seen) < most:
        fresh = [row for row in dict.fromkeys(map(tuple, batch.tolist())) if row not in seen]
        fresh = fresh[: most - len(seen)]
        if not fresh:
            batch = _random(visible, step, generator)
            continue
        seen.update(fresh)
        rows = torch.tensor(fresh, device=tally.data.X.device)
        found = tally.decide(rows.reshape(-1, *tally.best.shape))
        report(len(seen), most)
        batch = _next(rows, found, tally)
        missing = step - len(batch)
        if missing > 0:
            batch = torch.cat((batch, _random(visible, missing, generator)))


def _random(visible: list[Tensor], count: int, generator: torch.Generator) -> Tensor:
    """Draw random selections ``(count, n)``."""
    columns = [
        places[torch.randint(len(places), (count,), generator=generator)] for places in visible
    ]
    return torch.stack(columns, 1)


def _next(rows: Tensor, found: Locality, tally: _Tally) -> Tensor:
    """Return where training would go from selections that are not locally optimal."""
    gamma = scores(tally.data).reshape(-1, tally.data.T)
    pull = found.pull.reshape(len(rows), -1, tally.data.T)
    better = gamma.where(pull, -torch.inf).argmax(-1)
    moved = better.where(pull.any(-1), rows)
    # Nothing leads out of an infeasible selection but its contradiction; the best tokens do.
    best = tally.best.flatten().expand_as(rows)
    named = found.support.reshape(len(rows), -1, tally.data.T).any(-1)
    moved = moved.where(found.feasible[:, None], best.where(named, rows))
    return moved[~found.local]
