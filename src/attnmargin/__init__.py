"""attnmargin predicts what attention will learn: which tokens it selects, and by what margin.

Names are imported when they are first asked for, so that ``import attnmargin`` and the command
line start at once. ``__init__.pyi`` lists them, each with the module that it comes from.
"""

from ast import ImportFrom, parse
from importlib import import_module
from pathlib import Path
from typing import Any


def _homes() -> dict[str, tuple[str, str]]:
    """Return ``{public name: (module, name there)}`` from the stub; "" for a namespace's own."""
    stub = parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ImportFrom))
    return {
        entry.asname or entry.name: (f"{__name__}.{node.module or entry.name}", entry.name)
        for node in imports
        for entry in node.names
    }


_HOMES = _homes()
# Namespaces are modules; what they hold is listed in their own __all__.
NAMESPACES = ("decoders", "embeddings", "graphs", "heads", "losses", "measures", "methods",
              "models", "norms", "optim", "plot", "selections", "sweeps", "text",
              "theory")  # fmt: skip
__all__ = sorted(set(_HOMES) - {*NAMESPACES, "VERSION"})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _HOMES[name]
    if name in NAMESPACES:
        found: Any = import_module(module if module.endswith(f".{own}") else f"{module}.{own}")
    else:
        found = getattr(import_module(module), own)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
