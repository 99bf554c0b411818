"""Shards: the part of a sweep that one of several machines computes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

from attnmargin.base.errors import InputError

Part = TypeVar("Part")
_NEEDS = "i/n with i from 1 to n, such as 2/8"


@final
@dataclass(frozen=True)
class Shard:
    """Part ``i`` of ``n``: every n-th point, from the i-th on.

    >>> Shard(2, 3).of(list("abcdefg"))
    ['b', 'e']
    """

    i: int = 1
    n: int = 1

    def __post_init__(self) -> None:
        whole = type(self.i) is int and type(self.n) is int
        if not (whole and 1 <= self.i <= self.n):
            raise InputError("shard", f"{self.i}/{self.n}", _NEEDS)

    def of(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts of this shard."""
        return list(parts[self.i - 1 :: self.n])

    def __str__(self) -> str:
        return f"{self.i}/{self.n}"


def as_shard(shard: "Shard | str | None") -> Shard:
    """Read "2/8"; None is the whole.

    >>> as_shard("2/8"), as_shard(None)
    (Shard(i=2, n=8), Shard(i=1, n=1))
    """
    if shard is None or isinstance(shard, Shard):
        return shard or Shard()
    i, slash, n = str(shard).partition("/")
    if not (slash and i.strip().isdecimal() and n.strip().isdecimal()):
        raise InputError("shard", repr(shard), _NEEDS)
    return Shard(int(i), int(n))


def slurm_shard(environment: Mapping[str, str] = os.environ) -> Shard:
    """Return the part of this task of a SLURM array, or the whole outside of one.

    >>> slurm_shard({"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MIN": "0",
    ...              "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "5"})
    Shard(i=3, n=5)
    """
    if "SLURM_ARRAY_TASK_ID" not in environment:
        return Shard()
    own, least, step, count = (
        _number(environment, f"SLURM_ARRAY_TASK_{name}", usual)
        for name, usual in (("ID", None), ("MIN", 0), ("STEP", 1), ("COUNT", None))
    )
    return Shard((own - least) // max(step, 1) + 1, count)


def _number(environment: Mapping[str, str], name: str, usual: int | None) -> int:
    text = environment.get(name, "" if usual is None else str(usual))
    if not text.isdecimal():
        raise InputError(name, repr(text), "a whole number; or give the shard yourself, as 2/8")
    return int(text)
