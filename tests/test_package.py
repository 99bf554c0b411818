"""The package as a whole: names, versions, what importing costs."""

import ast
import importlib.util
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import attnmargin as am

ROOT = Path(__file__).parent.parent


def test_public_names_are_sorted_and_exist() -> None:
    assert am.__all__ == sorted(am.__all__)
    assert all(hasattr(am, name) for name in am.__all__)


def test_public_functions_have_an_example_that_runs() -> None:
    functions = [getattr(am, name) for name in am.__all__ if name[0].islower()]
    assert all(">>>" in (f.__doc__ or "") for f in functions)


def test_import_needs_only_torch_numpy_scipy() -> None:
    heavy = ("numba", "click", "rich", "matplotlib", "cvxpy", "clarabel", "daqp", "moreau",
             "sklearn")  # fmt: skip
    names = "[getattr(am, name) for name in (*am.__all__, *am.NAMESPACES)]"
    code = f"import sys, attnmargin as am; {names}; print([m for m in {heavy} if m in sys.modules])"
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


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, attnmargin; print({'torch', 'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_there_are_at_most_fifty_five_public_names() -> None:
    assert len(am.__all__) <= 55
    assert set(am.NAMESPACES) <= set(dir(am))
    for name in am.NAMESPACES:
        assert inspect.ismodule(getattr(am, name))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = am.nonsense  # type: ignore[attr-defined]


def test_no_public_function_shadows_its_module() -> None:
    owners = [am, *(getattr(am, name) for name in am.NAMESPACES)]
    for owner in owners:
        for name in getattr(owner, "__all__", []):
            found = getattr(owner, name)
            if inspect.isfunction(found):
                assert found.__module__.rsplit(".", 1)[1] != name
                spec = importlib.util.find_spec(f"{owner.__name__}.{name}")
                assert spec is None or owner.__name__ == "attnmargin.attention.heads", name


def test_training_takes_three_positional_arguments() -> None:
    kinds = [p.kind for p in inspect.signature(am.train).parameters.values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == 3


def test_every_file_has_a_room_and_is_short() -> None:
    source = ROOT / "src" / "attnmargin"
    outside = {path.name for path in source.glob("*") if path.is_file()}
    assert outside <= {"__init__.py", "__init__.pyi", "__main__.py", "version.py", "py.typed"}
    for path in source.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
                assert length <= 60, f"{path}: {node.name}"
