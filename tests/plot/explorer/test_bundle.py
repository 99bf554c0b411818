"""Modules of the explorer become one script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from attnmargin.plot.explorer import bundle
from attnmargin.plot.explorer.bundle import bundled, styles, tour_steps
from tests.browser import MODULES as NODE_MODULES

MODULES = Path(bundle.__file__).parent / "modules"


def test_a_module_follows_those_that_it_imports() -> None:
    script = bundled("app")
    order = [line.split()[1] for line in script.splitlines() if line.startswith("const $")]
    assert len(order) == len(set(order))
    assert order.index("$dom") < order.index("$picture") < order.index("$app")
    assert order[-1] == "$app"


def test_comments_and_indentation_are_left_out() -> None:
    script = bundled("page")
    assert "/**" not in script
    assert "\n " not in script
    assert "import {" not in script
    assert "A link brings" not in script


def test_strings_keep_their_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'export const a = "x = 1, y";\nexport const b = `p = ${1 + 2}, q`;\n'
    monkeypatch.setattr(bundle, "asset", lambda name: text)
    wrapped = bundle._wrapped("m", text)
    assert '"x = 1, y"' in wrapped
    assert "`p = ${1 + 2}, q`" in wrapped
    assert "const a=" in wrapped


def test_circles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"modules/a.js": "b", "modules/b.js": "a"}
    texts = {name: f'import {{ x }} from "./{other}.js";\n' for name, other in files.items()}
    monkeypatch.setattr(bundle, "asset", texts.__getitem__)
    with pytest.raises(ValueError, match="modules import each other: a → b → a"):
        bundle._collect("a", {}, ())


def test_no_template_has_several_lines() -> None:
    """Blanks at the beginning of lines are dropped, which would change such a template."""
    for path in MODULES.glob("*.js"):
        lines = [
            line for line in path.read_text().splitlines() if not line.strip().startswith("//")
        ]
        inside = "\n".join(line for line in lines if not line.strip().startswith("*"))
        assert all(line.count("`") % 2 == 0 for line in inside.splitlines() if "/**" not in line), (
            path
        )


def test_steps_have_titles_texts_and_tasks() -> None:
    for step in tour_steps():
        assert set(step) <= {"title", "text", "task", "state", "map"}
        assert step["title"]
        assert step["text"].endswith(".")
        assert step["task"].endswith(".")


def test_styles_speak_of_the_explorer_alone() -> None:
    """The explorer stands inside other pages: no rule may reach out of it."""
    sheet = styles()
    assert sheet.count("{") == sheet.count("}")
    known = (".explorer", ".explored", ".sentences-scene", ".graph-scene", ".tokengraph")
    for selector in re.findall(r"([^{}@]+)\{[^{}]*\}", sheet):
        for part in selector.split(","):
            assert part.strip().startswith(known), part


def test_types() -> None:
    """Types are written in comments; the compiler of TypeScript checks them."""
    compiler, node = NODE_MODULES / "typescript" / "bin" / "tsc", shutil.which("node")
    if node is None or not compiler.exists():
        pytest.skip("typescript is not installed (make setup installs it where npm is present)")
    done = subprocess.run(
        [node, str(compiler), "-p", str(MODULES / "tsconfig.json")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
