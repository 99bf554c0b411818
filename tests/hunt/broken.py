"""Break the constants of the theorems, one at a time: ``python -m tests.hunt.broken``.

Each is off by a factor of two, in the direction that proves more. The hunt among certified runs
must notice, or the constant is slack: the bound holds with the wrong one too.
"""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from attnmargin.theory.guarantees import funnel, level, proof
from attnmargin.theory.guarantees.frame import Frame
from tests.hunt.answers import Answer
from tests.hunt.area_runs import batches

_BATCHES = 30


@contextmanager
def _put(owner: Any, name: str, value: Any) -> Iterator[None]:
    old = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)


def _halved(name: str) -> Any:
    """A property of the frame, halved."""
    old = Frame.__dict__[name]
    return _put(Frame, name, property(lambda self: 0.5 * old.fget(self)))


def _framed(**factors: float) -> Any:
    """Fields of the frame, multiplied."""
    old = vars(proof)["build_frame"]

    def build(*given: Any) -> Frame:
        frame = old(*given)
        return replace(frame, **{k: x * getattr(frame, k) for k, x in factors.items()})

    return _put(proof, "build_frame", build)


def _searched(rho: float = 1.0, base: float = 0.0, log_a: float = 0.0) -> Any:
    """What the search for a funnel is given."""
    old = funnel._searched

    def searched(frame: Frame, low: Any, centre: Any, step: Any, usable: Any) -> Any:
        frame = replace(frame, log_kappa=frame.log_kappa + log_a)
        return old(frame, low + base, (*centre[:2], rho * centre[2]), step, usable)

    return _put(funnel, "_searched", searched)


def _levelled(name: str, factor: float, place: int | None = None) -> Any:
    """A part of Theorem A: its result, or one of its arguments, multiplied."""
    old = getattr(level, name)

    def part(*given: Any) -> Any:
        if place is None:
            return factor * old(*given)
        return old(*(factor * x if k == place else x for k, x in enumerate(given)))

    return _put(level, name, part)


def _tube(name: str) -> Any:
    """A number of the conclusion of Theorem B, halved."""
    old = vars(proof)["funnel_at"]

    def at(*given: Any, **options: Any) -> Any:
        found = old(*given, **options)
        tube = replace(found.tube, **{name: 0.5 * getattr(found.tube, name)})
        return replace(found, tube=tube)

    return _put(proof, "funnel_at", at)


LOG2 = math.log(2.0)
BROKEN: dict[str, Any] = {
    "nothing": lambda: _searched(),
    "B: ‖A^⊥‖": lambda: _halved("across"),
    "B: M": lambda: _framed(spread=0.5),
    "B: Θ": lambda: _framed(theta2=4.0),
    "B: Λ": lambda: _framed(bend=0.5),
    "B: ρ₀": lambda: _searched(rho=0.5),
    "B: e^{−m} of the centre": lambda: _searched(base=LOG2),
    "B: force of the other rows": lambda: _searched(log_a=-LOG2),
    "B: b, in the conclusion": lambda: _tube("growth"),
    "B: R, in the conclusion": lambda: _tube("radius"),
    "A: D̂": lambda: _levelled("_largest_drop", 0.5),
    "A: Θ": lambda: _levelled("_longest", 2.0, 0),
    "A: λ": lambda: _levelled("_longest", 0.5, 1),
    "A: B": lambda: _levelled("_longest", 0.5, 2),
    "A: ℓ_A": lambda: _levelled("_longest", 2.0),
    "A: level L₂ − L⋆": lambda: _levelled("staying_loss", 2.0),
    "A: K̂": lambda: _levelled("_entropy", 0.5),
}


def caught(name: str, count: int = _BATCHES, seed: int = 77) -> dict[str, Any]:
    """Hunt with one constant broken; return how many runs were certified, and how many left."""
    with BROKEN[name]():
        cases = [case for batch in islice(batches(seed), count) for case in batch]
    wrong = [case.about for case in cases if case.answer == Answer.WRONG]
    return {"certified": len(cases), "wrong": len(wrong), "such as": wrong[:1]}


if __name__ == "__main__":
    torch.set_num_threads(1)  # the instances are tiny
    table: dict[str, Any] = {}
    for name in BROKEN:
        table[name] = caught(name)
        print(f"{name:32} {table[name]['certified']:6} {table[name]['wrong']:6}", flush=True)
    Path(sys.argv[1] if len(sys.argv) > 1 else "broken.json").write_text(
        json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    )
