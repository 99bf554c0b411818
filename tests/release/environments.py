"""Clean environments, each on top of another, so that torch is installed once."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import final

ROOT = Path(__file__).parent.parent.parent
_LONGEST = 3600.0  # for machines with more to do than cores


@final
@dataclass(frozen=True)
class Environment:
    """A virtual environment: what is installed in it, and in those below it."""

    folder: Path
    below: tuple["Environment", ...] = ()

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        return next((self.folder / "lib").glob("python*/site-packages"))

    def make(self) -> None:
        """Make the folder; packages of the environments below are found after its own."""
        run([sys.executable, "-m", "venv", "--without-pip", self.folder])
        lines = [f"import site; site.addsitedir({str(own.packages)!r})\n" for own in self.below]
        (self.packages / "below.pth").write_text("".join(lines))

    def folders(self) -> list[str]:
        """List the folders in which its Python finds packages."""
        return [str(self.packages), *(name for own in self.below for name in own.folders())]

    def install(self, *what: object, constraints: str = "constraints.txt") -> None:
        """Install packages, by default in the versions of the tests, where none below will do."""
        pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-compile", "-c", ROOT / constraints, *what])

    def run(
        self, *words: object, place: Path, seconds: float = _LONGEST
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in a folder, without variables of the caller's, kernels beside it."""
        own = _variables() | {"COLUMNS": "200", "NUMBA_CACHE_DIR": str(place.parent / "kernels"),
                "MPLCONFIGDIR": str(place / "matplotlib")}  # fmt: skip
        return subprocess.run(
            [self.python, *map(str, words)], cwd=place, env=own, capture_output=True, text=True,
            timeout=seconds, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def run(words: list[object]) -> str:
    """Run a program; what it says is shown if it fails."""
    own = [*map(str, words)]
    done = subprocess.run(own, capture_output=True, text=True, cwd=ROOT, env=_variables())
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def _variables() -> dict[str, str]:
    """Return the variables of this process without Python's: a path would hide what is missing."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
