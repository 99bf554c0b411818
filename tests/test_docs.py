"""The site: every page is in its lists, and what it is made from fits together."""

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import attnmargin as am

DOCS = Path(__file__).parent.parent / "docs"
EXAMPLES = DOCS.parent / "examples"


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a file of docs/extensions by its name, and return what it defines."""
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return lambda name: runpy.run_path(str(DOCS / "extensions" / f"{name}.py"))


def listed(page: Path) -> set[str]:
    """The pages that the lists of a page name."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL)
    rows = [row for block in blocks for row in block.splitlines() if row and row[0] != ":"]
    return {row.rpartition("<")[2].rstrip(">") for row in rows}


def test_the_start_page_lists_every_page() -> None:
    names = listed(DOCS / "index.md")
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} - names == set()
    assert {"results/index", "reference/index", "gallery/index", "learn/index"} <= names


def test_every_program_has_its_place_and_a_title() -> None:
    tree = ast.parse((DOCS / "extensions" / "pictures.py").read_text())
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for path in [*EXAMPLES.glob("*.py"), *DOCS.glob("tutorials/*.py")]:
        assert path.stem in words, path
        title = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()
        assert title[1] == "=" * len(title[0]), path


def test_the_reference_has_every_public_name(extension: Any) -> None:
    names = extension("names")
    found = set(names["every_name"]())
    assert {f"attnmargin.{name}" for name in am.__all__} <= found
    values = [names["value_of"](name) for name in found]
    for namespace in am.NAMESPACES:
        module = getattr(am, namespace)
        for name in getattr(module, "__all__", []):
            assert any(getattr(module, name) is value for value in values), (namespace, name)


PAGE = """<html><head><link rel="stylesheet" href="{style}"></head>
<body><a id="here" href="#{anchor}">x</a><a href="{link}">y</a><script>{script}</script></body>
</html>"""


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"anchor": "there"}, "#there names an anchor that is not there"),
        ({"link": "nowhere.html"}, "nowhere.html does not exist"),
        ({"style": "https://elsewhere.org/a.css"}, "loads https://elsewhere.org/a.css"),
        ({"script": "fetch('https://elsewhere.org')"}, "loads http://… in a script"),
    ],
)
def test_the_check_of_the_site_finds_faults(
    change: dict[str, str], fault: str | None, tmp_path: Path, extension: Any
) -> None:
    check = extension("check")
    own = {"style": "a.css", "anchor": "here", "link": "https://elsewhere.org", "script": ""}
    (tmp_path / "a.css").write_text("body {}")
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(**(own | change)))
    pages = {path: check["Page"](path)}
    found = [*check["broken_links"](pages), *check["requests"](pages, tmp_path)]
    assert [sentence.partition(": ")[2] for sentence in found] == ([] if fault is None else [fault])


def test_the_check_reads_styles(tmp_path: Path, extension: Any) -> None:
    (tmp_path / "a.css").write_text("@import '//elsewhere.org/b.css'; a {src: url(own.woff)}")
    found = list(extension("check")["requests"]({}, tmp_path))
    assert len(found) == 1
    assert found[0].endswith("loads //elsewhere.org/b.css")
