"""Link every ``am.name`` in code type on a page to its place in the reference."""

import re
from typing import Any

from docutils import nodes
from names import full_name
from sphinx.application import Sphinx

# ``am.solve``, ``am.graphs.Automaton(graphs)``, but not ``am.predict(data).summary()``.
_NAME = re.compile(r"(?:am|attnmargin)\.((?:\w+\.)*\w+)(?:\([^()]*\))?")


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Turn names in code type into links."""
    if page.startswith("reference/"):
        return
    domain: Any = app.env.get_domain("py")
    objects = domain.objects
    for code in list(doctree.findall(nodes.literal)):
        found = _NAME.fullmatch(code.astext())
        if found is None or isinstance(code.parent, nodes.reference):
            continue
        name = next((own for own in _names(found.group(1)) if own in objects), None)
        if name is not None:
            place = app.builder.get_relative_uri(page, objects[name].docname)
            code.replace_self(nodes.reference("", "", code.deepcopy(), refuri=f"{place}#{name}"))


def _names(path: str) -> tuple[str, str]:
    """Return the names that a path may have in the reference."""
    return f"attnmargin.{path}", full_name(path.rpartition(".")[2])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
