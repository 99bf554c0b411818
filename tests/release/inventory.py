"""What comes along with each extra: versions, licences, known holes, and a bill of materials."""

import subprocess
import sys
from pathlib import Path

from tests.release.environments import ROOT, Environment, run
from tests.release.licences import Package, is_gnu, packages

_NOT_ASKED = "not found on PyPI"


def inventory(found: dict[str, Environment]) -> tuple[dict[str, list[Package]], list[str]]:
    """List the packages of each environment, print them, and say which have a GNU licence."""
    listed, wrong = {}, []
    for name, environment in found.items():
        if name in ("bare", "all"):
            continue
        listed[name] = packages("" if name == "none" else name, environment.folders())
        wrong += [f"{own.name} {own.version}, which {name} needs, has the licence {own.licence}"
                  for own in listed[name] if is_gnu(own.licence)]  # fmt: skip
    for own in sorted({own for several in listed.values() for own in several}):
        print(f"{own.name:28} {own.version:16} {own.licence}")
    print(_audited(found["all"]))
    return listed, wrong


def _audited(environment: Environment) -> str:
    """Ask pip-audit for known holes; say so if it cannot reach its database."""
    paths = [word for folder in environment.folders() for word in ("--path", folder)]
    words = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", *paths]
    done = subprocess.run(words, capture_output=True, text=True)
    told = done.stdout + done.stderr
    if _NOT_ASKED in told or "ConnectionError" in told:
        return (
            "pip-audit: its database cannot be reached from here; the list above stands in for it"
        )
    return f"pip-audit: {told.strip()}"


def write_bill(environment: Environment, wheel: Path, name: str) -> Path:
    """Write the bill of materials of an environment beside the wheel, as CycloneDX."""
    version = wheel.name.split("-")[1]
    path = wheel.parent / f"attnmargin-{version}-extras-{name}.cdx.json"
    run([sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
         "--pyproject", ROOT / "pyproject.toml", "--output-format", "JSON", "-o", path,
         environment.python])  # fmt: skip
    return path
