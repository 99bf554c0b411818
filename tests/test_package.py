"""The package as a whole: names, versions, what importing costs."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import attnmargin as am
from attnmargin.version import VERSION

ROOT = Path(__file__).parent.parent


def test_public_names_are_sorted_and_exist() -> None:
    assert am.__all__ == sorted(am.__all__)
    assert all(hasattr(am, name) for name in am.__all__)


def test_public_functions_have_an_example_that_runs() -> None:
    functions = [getattr(am, name) for name in am.__all__ if name[0].islower()]
    assert all(">>>" in (f.__doc__ or "") for f in functions)


def test_version_stands_in_the_changelog() -> None:
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_import_needs_only_torch_numpy_scipy() -> None:
    heavy = ("numba", "click", "rich", "matplotlib", "cvxpy", "clarabel", "daqp", "moreau")
    code = f"import sys, attnmargin; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_theory_page_names_things_that_exist() -> None:
    text = (ROOT / "docs" / "theory.md").read_text()
    for name in re.findall(r"`am\.(\w+)", text):
        assert hasattr(am, name), name
    for name in re.findall(r"`([\w/]+)::(test_\w+)`", text):
        assert f"def {name[1]}(" in (ROOT / "tests" / f"{name[0]}.py").read_text(), name


def test_examples_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sorted((ROOT / "examples").glob("*.py")):
        monkeypatch.setattr(sys, "argv", [str(path)])
        runpy.run_path(str(path), run_name="__main__")
        assert capsys.readouterr().out, path


def test_nothing_is_imported_from_a_test() -> None:
    """What tests share has modules of its own."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert not re.search(r"(?m)^\s*(from|import) tests\.[\w.]*test_", path.read_text()), path
