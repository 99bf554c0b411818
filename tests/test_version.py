"""The version of a wheel, of a source tree, and what is written about it."""

import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from attnmargin import version

ROOT = Path(__file__).parent.parent
_SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"][
    "fallback_version"
]


def _of(home: Path) -> str:
    """Return the version of a package that lies in a folder."""
    (home / "attnmargin").mkdir(exist_ok=True)
    shutil.copy(version.__file__, home / "attnmargin")
    return str(runpy.run_path(str(home / "attnmargin" / "version.py"))["VERSION"])


def test_a_source_tree_has_the_version_of_the_next_release(tmp_path: Path) -> None:
    assert _of(tmp_path) == _SOURCE


def test_the_next_release_stands_in_the_changelog() -> None:
    assert f"\n## {_SOURCE.removesuffix('.dev0')}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("built", ["1.2.0", "1.2.1.dev3+g0123abc.d20261119"])
def test_an_installed_package_has_the_version_of_its_wheel(tmp_path: Path, built: str) -> None:
    (tmp_path / f"attnmargin-{built}.dist-info").mkdir()
    (tmp_path / "attnmargin_other-7.dist-info").mkdir()
    assert _of(tmp_path) == built


def test_what_a_broken_installation_left_is_not_believed(tmp_path: Path) -> None:
    for built in ("1.0.0", "1.1.0"):
        (tmp_path / f"attnmargin-{built}.dist-info").mkdir()
    assert _of(tmp_path) == _SOURCE


def test_reading_the_version_costs_nothing() -> None:
    heavy = {"importlib.metadata", "subprocess", "torch"}
    code = f"import sys, attnmargin.version; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
