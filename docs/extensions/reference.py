"""Write the pages of the reference, one per room, and resolve the names in docstrings."""

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from names import (
    comment_of,
    everyday_names,
    full_name,
    inner_names,
    is_code,
    namespaces,
    owner_of,
    rooms,
    value_of,
)
from sphinx.application import Sphinx

FOLDER = "reference"
_INTRODUCTION = """\
Reference
=========

Every public name, by the room of the code that holds it. ``import attnmargin as am`` gives the
everyday names, such as ``am.solve``; all others are in namespaces, such as ``am.norms.Max``. Rooms
stand in the order in which data flow through them.

.. toctree::
   :maxdepth: 1

"""


def write_pages(app: Sphinx) -> None:
    """Write the page of every room, and the page that lists them."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    _write(folder / "index.rst", _INTRODUCTION + "".join(f"   {room}\n" for room in rooms()))
    for room in rooms():
        _write(folder / f"{room}.rst", page(room))


def page(room: str) -> str:
    """Return the page of a room."""
    module = importlib.import_module(f"attnmargin.{room}")
    parts = [_title(room, "="), _summary(module)]
    everyday = everyday_names(room)
    parts += [_table(everyday), *map(_entry, everyday)] if everyday else []
    for name, names in namespaces(room).items():
        parts += [_title(_short(name), "-"), _summary(owner_of(name))]
        parts += [_table(names), *map(_entry, names)] if names else []
    return "\n\n".join(parts) + "\n"


def resolve(app: Sphinx, env: Any, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Link a name to its page; types, and what has no page, stay plain."""
    if node.get("refdomain") != "py":
        return None
    target = str(node["reftarget"])
    name = full_name(target)
    domain = env.get_domain("py")
    if name in domain.objects:
        made: nodes.Element | None = domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", name, node, content
        )
        return made
    # What a role names must exist; the types of a signature may come from anywhere.
    first, short = target.partition(".")[0], target.rpartition(".")[2]
    known = short in inner_names() or first == "torch" or first in sys.stdlib_module_names
    return content if known or not isinstance(content, nodes.literal) else None


def _write(path: Path, text: str) -> None:
    """Write a page unless it says this already, so that Sphinx reads only what changed."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _title(words: str, line: str) -> str:
    return f"{words}\n{line * len(words)}"


def _short(name: str) -> str:
    return name if name.startswith("attnmargin.sklearn") else f"am.{name.partition('.')[2]}"


def _summary(module: Any) -> str:
    return inspect.getdoc(module) or ""


def _table(names: list[str]) -> str:
    rows = "\n".join(
        f"   * - :py:obj:`{_short(name)} <{name}>`\n     - {_first(name)}" for name in names
    )
    return f".. list-table::\n   :class: names\n   :widths: auto\n\n{rows}"


def _first(name: str) -> str:
    """Return what a docstring says first, on one line."""
    value = value_of(name)
    words = (inspect.getdoc(value) or "") if is_code(value) else comment_of(name)
    return " ".join(words.partition("\n\n")[0].split())


def _entry(name: str) -> str:
    value = value_of(name)
    if not is_code(value):
        return f".. py:data:: {name}\n\n   {comment_of(name)}"
    kind, options = ("class", "\n   :members:") if inspect.isclass(value) else ("function", "")
    return f".. auto{kind}:: {name}{options}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
