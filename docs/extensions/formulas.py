"""Formulas as MathML, which browsers draw without a script or a font from elsewhere."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def formula(node: Any, *, as_block: bool) -> str:
    """Return a formula in MathML; the bars of a norm keep their height."""
    written = str(tex2mathml(node.astext(), as_block=as_block))
    return written.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula into its line."""
    writer.body.append(formula(node, as_block=False))
    raise nodes.SkipNode


def displayed(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="formula">{formula(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
