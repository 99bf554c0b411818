"""The oldest versions that pyproject.toml allows; ``python -m tests.release.oldest`` lists them."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent.parent
PLACE = ROOT / "constraints-oldest.txt"
# Extras for those who work on attnmargin itself.
OURS = ("docs", "bench", "release", "fuzz", "dev")
_TITLE = "# The oldest versions that pyproject.toml allows: python -m tests.release.oldest"


def extras() -> dict[str, list[Requirement]]:
    """Return what each extra for users needs; "" is what everybody needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parts = {"": project["dependencies"], **project["optional-dependencies"]}
    return {name: [*map(Requirement, own)] for name, own in parts.items() if name not in OURS}


def oldest() -> dict[str, Version]:
    """Return the lower bound of every package; two bounds of one package must agree."""
    found: dict[str, Version] = {}
    for needed in (needed for own in extras().values() for needed in own):
        if needed.name == "attnmargin":
            continue
        (bound,) = needed.specifier
        version = Version(bound.version)
        if bound.operator != ">=" or found.setdefault(needed.name, version) != version:
            raise ValueError(f"{needed}: not one lower bound, or another one elsewhere")
    return found


def as_text() -> str:
    """Write the bounds as constraints for pip."""
    lines = [f"{name}=={version}" for name, version in sorted(oldest().items())]
    return "\n".join([_TITLE, *lines]) + "\n"


if __name__ == "__main__":
    PLACE.write_text(as_text())
