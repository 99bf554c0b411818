"""What comes along is found through all that it needs, with its licence."""

from pathlib import Path

from tests.release.licences import Package, packages


def _install(folder: Path, name: str, *lines: str) -> None:
    """Pretend that a package is installed."""
    home = folder / f"{name}-1.0.dist-info"
    home.mkdir()
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines])
    (home / "METADATA").write_text(text + "\n")


def test_what_an_extra_needs_is_followed_to_the_end(tmp_path: Path) -> None:
    _install(tmp_path, "attnmargin", "Requires-Dist: core", 'Requires-Dist: other; extra == "text"',
             'Requires-Dist: Draw[svg]; extra == "plot"')  # fmt: skip
    _install(tmp_path, "core", "License-Expression: MIT")
    _install(tmp_path, "draw", "License: BSD", 'Requires-Dist: lines; extra == "svg"',
             'Requires-Dist: old; python_version < "3"')  # fmt: skip
    _install(tmp_path, "lines", "Classifier: License :: OSI Approved :: GNU General Public License")
    for name in ("other", "old"):
        _install(tmp_path, name)
    core = Package("core", "1.0", "MIT")
    assert packages("", [str(tmp_path)]) == [core]
    assert [own.name for own in packages("plot", [str(tmp_path)])] == ["core", "draw", "lines"]
    assert packages("plot", [str(tmp_path)])[2].licence == "GNU General Public License"
    assert packages("text", [str(tmp_path)])[1].licence == "not stated"
