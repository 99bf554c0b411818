"""Docstrings as they are written → what Sphinx reads: formulas, fields, types as in the source."""

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from names import ALIASES, is_code, known_names
from sphinx.application import Sphinx

_SECTIONS = ("Args:", "Returns:", "Example:", "Raises:", "Yields:")


def mend(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Set formulas apart from the text, and list the fields of a record."""
    mended = list(_formulas(lines))
    if what == "class":
        mended += _fields(value)
    lines[:] = mended


def signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, given: str | None, result: Any
) -> tuple[str | None, str | None] | None:
    """Write a signature with the names of types as in the source, where one alias says enough."""
    if what not in ("function", "method", "class"):
        return None
    function = value if what != "class" else vars(value).get("__init__")
    node = _tree(function)
    if not isinstance(node, ast.FunctionDef):
        return None
    bound = what == "class" or (what == "method" and not _static(value))
    arguments = node.args
    if bound:
        (arguments.posonlyargs or arguments.args).pop(0)
    names = _Names(getattr(inspect.unwrap(function), "__globals__", {}))
    for argument in (own for own in ast.walk(arguments) if isinstance(own, ast.arg)):
        argument.annotation = argument.annotation and names.visit(argument.annotation)
    returns = names.visit(node.returns) if node.returns and what != "class" else None
    return f"({ast.unparse(arguments)})", returns and ast.unparse(returns)


class _Names(ast.NodeTransformer):
    """Give the types of a signature the names that they have in the reference.

    ``~`` hides all but the last part. Sphinx would otherwise look for any class called so.
    """

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.known.get(node.id, getattr(builtins, node.id, None))
        home = getattr(value, "__module__", ALIASES) if is_code(value) else ALIASES
        name = known_names().get(f"{home}.{node.id}", f"{home}.{node.id}")
        return node if home == "builtins" else ast.Name(f"~{name}")

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Read a type that stands in quotes, since its module is imported late."""
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _formulas(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with indented formulas outside of sections as blocks of their own."""
    inside, before = False, ""
    end = next((k for k, line in enumerate(lines) if line.startswith(_SECTIONS)), len(lines))
    for line in lines[:end]:
        stripped = line.strip()
        formula = line.startswith("    ")
        if formula and not inside and not before:
            yield from (".. code-block:: text", "   :class: formula", "")
            inside = True
        if stripped and not formula:
            inside = False
        yield line
        before = stripped
    yield from lines[end:]


def _fields(kind: type) -> list[str]:
    """Return a section with the fields of a record, and what the comments beside them say."""
    node = _tree(kind) if "__dataclass_fields__" in vars(kind) or _typed(kind) else None
    if not isinstance(node, ast.ClassDef):
        return []
    names = _Names(vars(sys.modules[kind.__module__]))
    source = textwrap.dedent(inspect.getsource(kind)).splitlines()
    found = []
    for own in node.body:
        if isinstance(own, ast.AnnAssign) and isinstance(own.target, ast.Name):
            name, line = own.target.id, source[(own.end_lineno or own.lineno) - 1]
            comment = line[own.end_col_offset or 0 :].partition("#")[2].strip()
            if not name.startswith("_"):
                kinds = ast.unparse(names.visit(own.annotation))
                found.append(f"    {name} ({kinds}): {_plain(comment)}")
    return ["", "Attributes:", *found, ""] if found else []


def _plain(words: str) -> str:
    """Escape what reStructuredText would read as markup."""
    parts = words.split("``")
    parts[::2] = [p.replace("*", r"\*").replace("|", r"\|").replace("`", "") for p in parts[::2]]
    return "``".join(parts)


def _typed(kind: type) -> bool:
    return issubclass(kind, dict) and "__annotations__" in vars(kind)


def _static(value: Any) -> bool:
    """Test whether a method has no first argument to leave out."""
    return isinstance(value, staticmethod)


def _tree(value: Any) -> ast.stmt | None:
    """Parse the source of a function or class."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None


def foreign(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what other packages add to a class."""
    home = str(getattr(value, "__module__", "attnmargin"))
    return None if home.startswith("attnmargin") or not inspect.isroutine(value) else True


def setup(app: Sphinx) -> dict[str, bool]:
    # Before napoleon reads the sections.
    app.connect("autodoc-process-docstring", mend, priority=400)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
