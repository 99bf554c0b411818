"""Folders of texts: one file per text, in a folder per class."""

from collections.abc import Iterator
from pathlib import Path

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file
from attnmargin.base.streams import lines_of

_SPLITS = ("train", "test", "valid", "validation", "dev")
# The official reviews come with texts that have no label.
_UNLABELLED = ("unsup",)
_NEEDS = "a file of text"
_ENDINGS = ("*.txt", "*.txt.gz")


def folder_texts(path: Path, encoding: str | None = None) -> Iterator[tuple[str, str, str, Path]]:
    """Yield texts, class, split and file: the class is the folder, the split the one above."""
    roots = {path / name: name for name in _SPLITS if (path / name).is_dir()}
    if not any(map(_classes, roots)):
        roots = {path: ""}
    found = False
    for root, split in roots.items():
        for folder in _classes(root):
            for file in _files(folder):
                found = True
                lines = lines_of(check_file(file, needs=_NEEDS), _NEEDS, encoding)
                yield "".join(lines), folder.name, split, file
    if not found:
        needs = "a folder per class with .txt files in it, such as pos/*.txt and neg/*.txt"
        raise InputError("file", f"the folder {path!s:.200}", needs)


def _classes(root: Path) -> list[Path]:
    """List the folders that hold texts."""
    own = (folder for folder in sorted(root.iterdir()) if folder.is_dir())
    return [folder for folder in own if folder.name not in _UNLABELLED and _files(folder)]


def _files(folder: Path) -> list[Path]:
    return sorted(file for ending in _ENDINGS for file in folder.glob(ending))
