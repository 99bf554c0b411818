"""A wheel that lacks a file, or has one too many, is noticed."""

from pathlib import Path
from zipfile import ZipFile

from tests.release import artefacts


def _wheel(folder: Path, names: list[str]) -> Path:
    path = folder / "attnmargin-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_the_files_of_a_wheel_are_those_of_the_source(tmp_path: Path) -> None:
    source = artefacts._SOURCE
    names = [f"attnmargin/{path.relative_to(source).as_posix()}" for path in source.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    assert "attnmargin/report/pages/page.css" in names
    assert artefacts._faults_of_wheel(_wheel(tmp_path, names)) == []
    wrong = [*(name for name in names if not name.endswith("page.css")), "attnmargin/left.py"]
    assert artefacts._faults_of_wheel(_wheel(tmp_path, wrong)) == [
        "the wheel lacks attnmargin/report/pages/page.css",
        "the wheel has attnmargin/left.py, the source has not",
    ]
