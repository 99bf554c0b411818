"""Which packages come along with each extra, under which licences."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from typing import NamedTuple, final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# The GNU licences of libraries of GCC say that what is linked with them stays free of them.
_EXCEPTION = re.compile(r"\S+ WITH GCC-exception-\d\.\d", re.IGNORECASE)
_GNU = re.compile(r"\b[AL]?GPL|GNU (Lesser |Library |Affero )?General Public", re.IGNORECASE)
_CLASSIFIER = "License :: "
_LONGEST = 80


@final
class Package(NamedTuple):
    """A package that comes along."""

    name: str
    version: str
    licence: str


def packages(extra: str, folders: Iterable[str]) -> list[Package]:
    """List what ``attnmargin[extra]`` needs, and what that needs, of the packages in folders."""
    installed: dict[str, Distribution] = {
        canonicalize_name(own.metadata["Name"]): own for own in distributions(path=list(folders))
    }
    seen: set[tuple[str, str]] = set()
    ahead = [("attnmargin", ""), ("attnmargin", extra)]
    while ahead:
        name, asked = ahead.pop()
        if (name, asked) in seen or name not in installed:
            continue
        seen.add((name, asked))
        for needed in _needed(installed[name], asked):
            inner = canonicalize_name(needed.name)
            ahead += [(inner, ""), *((inner, own) for own in needed.extras)]
    found = [installed[name] for name in sorted({name for name, _ in seen} - {"attnmargin"})]
    return [Package(own.metadata["Name"], own.version, licence_of(own)) for own in found]


def _needed(distribution: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield what a package needs on this machine, for one of its extras or for none."""
    for line in distribution.requires or ():
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            yield needed


def licence_of(distribution: Distribution) -> str:
    """Read a licence: the expression, else the classifiers, else the first line of the field."""
    metadata = distribution.metadata
    if "License-Expression" in metadata:
        return str(metadata["License-Expression"])
    stated = [str(value) for value in metadata.get_all("Classifier", ())]
    classifiers = [value.rpartition(" :: ")[2] for value in stated
                   if value.startswith(_CLASSIFIER) and value.count(" :: ") > 1]  # fmt: skip
    field = str((metadata.get_all("License") or [""])[0]).strip().splitlines()[:1]
    return " / ".join(classifiers) or "".join(field)[:_LONGEST] or "not stated"


def is_gnu(licence: str) -> bool:
    """Check whether a licence leaves no choice but a GNU licence that binds what uses it.

    >>> is_gnu("GPL-3.0-or-later"), is_gnu("MIT OR LGPL-2.1"), is_gnu("BSD-3-Clause AND LGPL-2.1")
    (True, False, True)
    >>> is_gnu("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1")
    False
    """
    plain = _EXCEPTION.sub("", licence)
    choices = re.split(r"\s+OR\s+", plain) if "(" not in plain else [plain]
    return all(_GNU.search(choice) for choice in choices)
