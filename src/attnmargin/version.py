"""The version: of the wheel that was installed, or of the next release in a source tree."""

from pathlib import Path

# The same stands in pyproject.toml, for builds without git, and in the changelog.
_SOURCE = "0.1.0.dev0"


def _installed() -> str | None:
    """Read the version from the name of the metadata folder beside an installed package.

    Other metadata on the path may belong to another copy of the package, and reading them takes
    longer than the rest of ``attnmargin --version``.
    """
    home = Path(__file__).parent
    found = [path.stem.split("-")[1] for path in home.parent.glob(f"{home.name}-*.dist-info")]
    return found[0] if len(found) == 1 else None


VERSION = _installed() or _SOURCE
