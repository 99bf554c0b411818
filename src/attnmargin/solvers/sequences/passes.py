"""Passes over a source: what its rows miss, and which of them to build."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.sequences.chunk import Chunk
from attnmargin.solvers.sequences.kept import Kept, joined, no_rows
from attnmargin.solvers.sequences.source import Source


@final
@dataclass(frozen=True)
class Wanted:
    """Rows to build: those that miss the most, at most so many, and of each query."""

    most: int
    of_each: int
    share: float  # none with a slack above this


@final
@dataclass(frozen=True)
class Seen:
    """What a pass saw."""

    rows: Kept  # wanted, and not held yet
    missing: Tensor  # by these rows, (m,)
    worst: float  # missing by any row that is not held
    lift: float  # the factor that makes W satisfy all inequalities; infinite if none does


@final
class Passes:
    """A source that must yield the same sequences in every pass; numbers its rows."""

    def __init__(self, source: Source, numbers: int) -> None:
        self._source, self._numbers = source, numbers
        self._counts: tuple[int, int, int] | None = None

    @property
    def rows(self) -> int:
        """Number of rows, known after a pass."""
        return 0 if self._counts is None else self._counts[1]

    def __iter__(self) -> Iterator[tuple[int, Chunk]]:
        """Yield chunks, each with the number of places for rows before it."""
        sequences = rows = offset = d = 0
        for chunk in self._source.chunks(self._numbers):
            width = chunk.X.shape[-1]
            if d not in (0, width):
                got = f"tokens of width {width} in sequence {chunk.first}"
                raise InputError("X", got, f"width {d}, as in the sequences before")
            d = width
            yield offset, chunk
            offset += chunk.size
            rows += int(chunk.exists.sum())
            sequences = max(sequences, chunk.first + len(chunk.X))
        self._compare((sequences, rows, offset))

    def _compare(self, counts: tuple[int, int, int]) -> None:
        if counts[0] == 0:
            raise InputError("sequences", "no sequence", "at least one")
        first = self._counts = self._counts or counts
        if counts != first:
            got = "{} sequences with {} rows in one pass".format(*first[:2])
            got += ", {} with {} in another".format(*counts[:2])
            raise InputError("sequences", got, "the same in every pass")

    @one_thread
    def direction(self) -> Tensor:
        """Compute the first step of descent, ``(d, d)``."""
        return sum((chunk.direction() for _, chunk in self), start=torch.zeros(()))

    @one_thread
    def look(self, W: Tensor, held: Kept, wanted: Wanted) -> Seen:
        """Evaluate all rows at W; build some of those that are not held."""
        best, worst, least = _Best(W.shape[0], wanted), -torch.inf, torch.inf
        for offset, chunk in self:
            missing = chunk.missing(W)
            least = min(least, 1.0 - _worst_inequality(chunk, missing))
            flat = missing.view(-1)
            low, high = torch.searchsorted(held.key, torch.tensor([offset, offset + chunk.size]))
            flat[held.key[low:high] - offset] = -torch.inf
            worst = max(worst, float(flat.max()))
            best.add(chunk, missing, offset)
        lift = max(1.0 / least, 1.0) if least > 0.0 else torch.inf
        return Seen(*best.rows(), worst, lift)

    def parts(self, held: Kept) -> Iterator[MarginProblem]:
        """Build all rows, a part at a time; compare those that are held with what they were."""
        for offset, chunk in self:
            low, high = torch.searchsorted(held.key, torch.tensor([offset, offset + chunk.size]))
            before = held[int(low) : int(high)]
            again = chunk.rows(before.key - offset, offset)
            same = (before.left == again.left).all(-1) & (before.right == again.right).all(-1)
            same &= before.names[:, 2] == again.names[:, 2]
            if not bool(same.all()):
                sequence = int(before.names[~same][0, 0])
                got = f"other numbers in sequence {sequence} than in an earlier pass"
                raise InputError("sequences", got, "the same in every pass")
            queries = max(self._numbers // max(chunk.X.numel(), 1), 1)
            yield from (part.problem() for part in chunk.by_queries(queries))


def _worst_inequality(chunk: Chunk, missing: Tensor) -> float:
    tied = chunk.chosen & chunk.exists
    return float((missing.masked_fill(tied, -torch.inf) if bool(tied.any()) else missing).max())


@final
class _Best:
    """The rows that miss the most, so far."""

    def __init__(self, d: int, wanted: Wanted) -> None:
        self._wanted, self._least = wanted, -wanted.share
        self._rows, self._missing = no_rows(d), torch.empty(0, dtype=torch.float64)

    def add(self, chunk: Chunk, missing: Tensor, offset: int) -> None:
        of_query = missing.flatten(0, 1)
        if self._wanted.of_each < of_query.shape[1]:
            value, token = of_query.topk(self._wanted.of_each, -1, sorted=False)
            query = torch.arange(len(of_query)).unsqueeze(-1)
            place = (token + query * of_query.shape[1]).flatten()
            value = value.flatten()
            near = value > self._least
            value, place = value[near], place[near]
        else:
            place = (missing.view(-1) > self._least).nonzero().flatten()
            value = missing.view(-1)[place]
        if len(value) > self._wanted.most:
            own = value.topk(self._wanted.most, sorted=False).indices
            value, place = value[own], place[own]
        if not len(value):
            return
        self._rows = joined(self._rows, chunk.rows(place, offset))
        self._missing = torch.cat((self._missing, value))
        if len(self._missing) > 2 * self._wanted.most:
            self._prune()

    def _prune(self) -> None:
        if len(self._missing) > self._wanted.most:
            value, own = self._missing.topk(self._wanted.most, sorted=False)
            self._rows, self._missing = self._rows[own], value
            self._least = max(self._least, float(value.min()))

    def rows(self) -> tuple[Kept, Tensor]:
        """Return rows in the order of their keys, and what they miss."""
        self._prune()
        order = self._rows.key.argsort()
        return self._rows[order], self._missing[order]
