"""Wheel and sdist: built, complete, described right, and the same from either side."""

import shutil
import sys
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

from tests.release.environments import ROOT, run

_SOURCE = ROOT / "src" / "attnmargin"
# What a user of the sdist needs to build, read and test it.
_IN_SDIST = (
    "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "constraints.txt", "Makefile",
    "docs/quickstart.md", "tests/conftest.py", "examples/next_token.py",
)  # fmt: skip


def build(out: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; return both."""
    shutil.rmtree(out, ignore_errors=True)
    # What an earlier build left behind would find its way into the wheel.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", out, ROOT])
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def faults(sdist: Path, wheel: Path, other: Path) -> list[str]:
    """Say what is wrong with an sdist and its wheel; ``other`` is a folder to build in."""
    return [*_faults_of_wheel(wheel), *_faults_of_sdist(sdist), *_faults_of_metadata(sdist, wheel),
            *_differences(wheel, other)]  # fmt: skip


def _faults_of_wheel(wheel: Path) -> list[str]:
    """Compare the files of a wheel with those of the source tree."""
    found = {name for name in ZipFile(wheel).namelist() if name.startswith("attnmargin/")}
    wanted = {
        f"attnmargin/{path.relative_to(_SOURCE).as_posix()}"
        for path in _SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    lacks = [f"the wheel lacks {name}" for name in sorted(wanted - found)]
    return lacks + [f"the wheel has {name}, the source has not" for name in sorted(found - wanted)]


def _faults_of_sdist(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [f"the sdist lacks {name}" for name in _IN_SDIST if name not in names]


def _faults_of_metadata(sdist: Path, wheel: Path) -> list[str]:
    """Check metadata as an index does: every field valid, names and versions equal, a README."""
    with tarfile.open(sdist) as archive:
        stem = sdist.name.removesuffix(".tar.gz")
        inner = archive.extractfile(f"{stem}/PKG-INFO")
        assert inner is not None
        described = inner.read()
    own = metadata_bytes(wheel)
    Metadata.from_email(own, validate=True)
    Metadata.from_email(described, validate=True)
    names = {parse_wheel_filename(wheel.name)[:2], parse_sdist_filename(sdist.name)}
    message = message_from_bytes(own)
    return [
        *(["metadata of wheel and sdist differ"] if own != described else []),
        *(["names of wheel and sdist differ"] if len(names) > 1 else []),
        *(["no README"] if "## Install" not in str(message.get_payload()) else []),
        *(f"no field {name}" for name in _needed() if name not in message),
    ]


def _needed() -> tuple[str, ...]:
    return "Summary", "License-Expression", "License-File", "Requires-Python", "Keywords"


def metadata_bytes(wheel: Path) -> bytes:
    """Read the metadata of a wheel."""
    archive = ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return archive.read(name)


def metadata_of(wheel: Path) -> Message:
    """Parse the metadata of a wheel."""
    return message_from_bytes(metadata_bytes(wheel))


def _differences(wheel: Path, other: Path) -> list[str]:
    """Build the wheel from the tree instead of the sdist, and compare all files."""
    run([sys.executable, "-m", "build", "--wheel", "--outdir", other, ROOT])
    (again,) = other.glob("*.whl")
    first, second = ZipFile(wheel), ZipFile(again)
    if wheel.name != again.name or set(first.namelist()) != set(second.namelist()):
        return ["the wheels from the sdist and from the tree have other names or files"]
    return [
        f"{name} differs between the wheels from the sdist and from the tree"
        for name in sorted(first.namelist())
        if first.read(name) != second.read(name)
    ]
