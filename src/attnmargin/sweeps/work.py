"""The work at one point: call the function, check what it returns, stack the trials."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.sweeps.command import Command
from attnmargin.sweeps.grid import Settings, fingerprint, plain

Function = Callable[..., Any]
_NEEDS = "a dict of numbers, words or arrays of them, or one number"


@final
@dataclass(frozen=True)
class Work:
    """A computation with its trials and seed: ``work(settings)`` gives the arrays of a point.

    A function with an argument ``trials`` is called once per point and returns arrays ``(trials,)``
    for quantities that differ between trials. Any other is called once per trial, and what it
    returns is stacked. Trial k has the same seed at every point, so that points can be compared
    trial by trial.
    """

    function: Function
    name: str
    trials: int = 1
    seed: int = 0

    def __call__(self, settings: Settings) -> dict[str, NDArray[Any]]:
        """Compute all trials of a point."""
        names = arguments(self.function)
        if names is None or "trials" in names:
            more = {"trials": self.trials, "seed": self.seed}
            known = {k: v for k, v in more.items() if names is None or k in names}
            return _arrays(self.function(**settings, **known))
        rows = [_arrays(self._trial(settings, names, k)) for k in range(self.trials)]
        if any(row.keys() != rows[0].keys() for row in rows):
            raise InputError("function", "trials with different names", "the same of every trial")
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _trial(self, settings: Settings, names: set[str], k: int) -> Any:
        more = {"trial": k, "seed": seed_of("trial", k, base=self.seed)}
        return self.function(**settings, **{n: v for n, v in more.items() if n in names})

    def mark(self, settings: Settings) -> str:
        """Return the fingerprint of a point."""
        return fingerprint(self.name, settings, self.trials, self.seed)


def as_work(function: Function | str | list[str], trials: int, seed: int) -> Work:
    """Name a function, or a command given in words."""
    if isinstance(function, str | list | tuple):
        function = Command(function)
    if not callable(function):
        raise InputError("function", f"a {type(function).__name__}", "a function, or a command")
    return Work(function, identity(function), trials, seed)


def identity(function: Function) -> str:
    """Name a function by module, name, text and the numbers and words that it captures.

    So a changed function is another one; what it calls is not looked at. Functions of this package
    keep their name in later versions.
    """
    own = getattr(function, "identity", None)
    if isinstance(own, str):
        return own
    if isinstance(function, Command):
        return f"command {fingerprint(function.words)}"
    if getattr(function, "__module__", "").startswith("attnmargin."):
        return f"{function.__module__}.{function.__qualname__}"
    if isinstance(function, partial):
        held = [
            plain("function", value)
            for value in (*function.args, *sorted(function.keywords.items()))
        ]
        return f"{identity(function.func)} {fingerprint(held)}"
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    return f"{name} {fingerprint(text, _captured(function))}"


def _captured(function: Function) -> list[Any]:
    """List the plain values that a function captures from around it."""
    found = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            found.append(plain("function", cell.cell_contents))
        except (InputError, ValueError):  # ValueError: an empty cell
            continue
    return found


def arguments(function: Function) -> set[str] | None:
    """Return the names that a function can be called with; None for any."""
    if isinstance(function, Command):
        return set(function.names)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return set()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def check_arguments(work: Work, points: list[Settings]) -> None:
    """Raise InputError early if the function cannot be called with the settings of the points."""
    names = arguments(work.function)
    if names is None:
        return
    for name in dict.fromkeys(name for point in points for name in point):
        if name not in names:
            known = ", ".join(sorted(names - {"trial", "trials", "seed"})) or "no settings"
            raise InputError("grid", f"the name {name!r}", f"names that the function has: {known}")
    if work.trials > 1 and not names & {"trials", "trial", "seed"}:
        needs = "one of the arguments trials, trial and seed, or trials=1"
        raise InputError("function", f"none that tells {work.trials} trials apart", needs)
    _check_complete(work, points, names)


def _check_complete(work: Work, points: list[Settings], names: set[str]) -> None:
    """Raise InputError if a point lacks a setting that the function needs."""
    if isinstance(work.function, Command):
        needed = names
    else:
        known = inspect.signature(work.function).parameters.values()
        needed = {p.name for p in known if p.default is p.empty and p.name in names}
    for point in points:
        lacking = sorted(needed - point.keys() - {"trial", "trials", "seed"})
        if lacking:
            raise InputError(
                "grid", f"no {lacking[0]!r}", f"a value of {lacking[0]} at every point"
            )


def _arrays(found: Any) -> dict[str, NDArray[Any]]:
    """Convert what a function returned to arrays by name."""
    if not isinstance(found, Mapping):
        found = {"value": found}
    if not found:
        raise InputError("function", "an empty dict", _NEEDS)
    return {_checked(name): _array(name, value) for name, value in found.items()}


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not name or name.startswith("_") or "/" in name:
        raise InputError("function", f"the name {name!r:.80}", "words that do not begin with _")
    return name


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
    except ValueError:
        array = np.empty((), dtype=object)
    if array.dtype.kind == "O" and all(isinstance(x, str) for x in array.flat):
        array = array.astype(str)  # enumerations of words
    if array.dtype.kind not in "biufcUS":
        raise InputError("function", f"a {type(value).__name__} for {name!r}", _NEEDS)
    return array
