"""What the library offers, by room: the pages of the reference, and where a name stands on them."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import attnmargin

SOURCE = Path(attnmargin.__file__).parent
# In the order of the flow; base holds the errors. Rooms that are not here come last.
_ORDER = ("data", "attention", "margin", "solvers", "prediction", "training", "optim", "selections",
          "graphs", "decoders", "embeddings", "text", "models", "theory", "sweeps", "sklearn",
          "plot", "base")  # fmt: skip
# Where types live that are no classes, such as ``Array``.
ALIASES = "types"


def room_of(module: str) -> str:
    """Return "margin" for "attnmargin.margin.norms"."""
    return module.partition(".")[2].partition(".")[0]


@cache
def rooms() -> tuple[str, ...]:
    """Return the rooms that hold public names."""
    homes = [_home(name) for name in attnmargin.__all__]
    homes += [owner_of(f"attnmargin.{name}").__name__ for name in attnmargin.NAMESPACES]
    found = {room_of(home) for home in homes} | {"sklearn"}
    return tuple(sorted(found, key=lambda room: (*_ORDER, room).index(room)))


def everyday_names(room: str) -> list[str]:
    """Return the names of ``am`` that a room holds."""
    names = [name for name in attnmargin.__all__ if room_of(_home(name)) == room]
    return [f"attnmargin.{name}" for name in names]


def namespaces(room: str) -> dict[str, list[str]]:
    """Return the namespaces of a room, with the names that ``am`` itself lacks."""
    names = [f"attnmargin.{name}" for name in (*attnmargin.NAMESPACES, "sklearn")]
    found = {name: owner_of(name) for name in names}
    return {
        name: [f"{name}.{own}" for own in _rest(module)]
        for name, module in found.items()
        if room_of(module.__name__) == room
    }


def members(module: ModuleType) -> list[str]:
    """Return the public names of a namespace."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and is_code(value) and value.__module__ == module.__name__
    )


def value_of(name: str) -> Any:
    """Return what a full name, such as "attnmargin.norms.Max", means."""
    owner, _, short = name.rpartition(".")
    return getattr(owner_of(owner), short)


def owner_of(path: str) -> ModuleType:
    """Return the package, or a namespace such as "attnmargin.norms"."""
    first, _, rest = path.partition(".")
    if not rest or rest == "sklearn":
        return importlib.import_module(path)
    found: ModuleType = getattr(importlib.import_module(first), rest)
    return found


def is_code(value: object) -> bool:
    """Test whether a value has a docstring of its own."""
    return inspect.isclass(value) or inspect.isfunction(value)


def comment_of(name: str) -> str:
    """Return the comment above a constant."""
    owner, _, short = name.rpartition(".")
    for path in Path(str(owner_of(owner).__file__)).parent.rglob("*.py"):
        found = re.search(rf"(?m)^# (.+)\n(?:\w+, )*{short}\b.* = ", path.read_text("utf-8"))
        if found:
            return found.group(1)
    raise ValueError(f"{name} has no comment that says what it is")


def full_name(target: str) -> str:
    """Return the name in the reference of what is called so, or defined there; "" for none."""
    known = known_names()
    if target.startswith(ALIASES):
        return ""
    owner, _, short = target.rpartition(".")
    method = known.get(owner) or known.get(owner.rpartition(".")[2])
    return known.get(target) or known.get(short) or (f"{method}.{short}" if method else "")


@cache
def known_names() -> dict[str, str]:
    """Return the names in the reference, by short name and by the path of the definition."""
    found: dict[str, str] = {}
    for name in every_name():
        value, short = value_of(name), name.rpartition(".")[2]
        found[f"{getattr(value, '__module__', '')}.{short}"] = name
        found.setdefault(short, name)
    return found


def every_name() -> Iterator[str]:
    """Yield the full name of everything that has a place in the reference."""
    for room in rooms():
        yield from everyday_names(room)
        for names in namespaces(room).values():
            yield from names


@cache
def inner_names() -> frozenset[str]:
    """Return the names of all functions, classes and modules, public or not."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        found.add(path.parent.name if path.stem == "__init__" else path.stem)
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found |= {n.name for n in nodes if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    return frozenset(found)


def _home(name: str) -> str:
    return str(getattr(attnmargin, name).__module__)


def _rest(module: ModuleType) -> list[str]:
    """Return the names of a namespace that are not names of ``am``, too."""
    everyday = [getattr(attnmargin, name) for name in attnmargin.__all__]
    return [
        name
        for name in members(module)
        if not any(getattr(module, name) is known for known in everyday)
    ]
