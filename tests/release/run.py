"""Build, check and try a release: ``python -m tests.release.run``, or ``make release``.

Exit 1: something is wrong, and it is said what.
"""

import json
import shutil
import sys
from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from attnmargin.base.extras import EXTRAS
from tests.release.artefacts import build, faults
from tests.release.environments import ROOT, Environment
from tests.release.inventory import inventory, write_bill
from tests.release.oldest import PLACE
from tests.release.pages import try_oldest, try_pages
from tests.release.snippets import try_snippets
from tests.release.uses import USES, prepare, try_uses

NONE, ALL = "none", "all"
_RESULTS = Path(__file__).with_name("results.json")
# Commands wait for the disk more than for a core.
_AT_ONCE = 2


def environments(folder: Path, wheel: Path) -> dict[str, Environment]:
    """Install the wheel with torch, numpy and scipy alone, with no extra, with each, with all.

    Environments that are in the folder already are used as they are.
    """
    bare = Environment(folder / "bare")
    if not bare.folder.exists():
        bare.make()
        bare.install("torch", "numpy", "scipy")
        bare.install("--no-deps", wheel)
    none = Environment(folder / NONE, (bare,))
    found = {"bare": bare, NONE: none}
    found |= {name: Environment(folder / name, (none,)) for name in EXTRAS}
    for name, own in found.items():
        if not own.folder.exists():
            print(f"installing {name}", flush=True)
            own.make()
            own.install(wheel if name == NONE else f"{wheel}[{name}]")
    everything = Environment(folder / ALL, tuple(found[name] for name in EXTRAS))
    everything.make()
    return found | {ALL: everything}


def tried(found: dict[str, Environment], folder: Path) -> dict[str, dict[str, str]]:
    """Run every use without extras, with each alone and with all; no extra is first, alone.

    It compiles the kernels for the others.
    """
    template = folder / "files"
    template.mkdir(parents=True)
    prepare(template, found[NONE])

    def one(name: str) -> dict[str, str]:
        place = folder / name
        shutil.copytree(template, place)
        print(f"trying every command with {name}", flush=True)
        return try_uses(found[name], place)

    results = {NONE: one(NONE)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        names = (*EXTRAS, ALL)
        return results | dict(zip(names, pool.map(one, names), strict=True))


def print_table(results: dict[str, dict[str, str]]) -> list[str]:
    """Print what each command does with which extra, and return what is wrong."""
    for use in USES:
        answers: dict[str, list[str]] = {}
        for name, own in results.items():
            answers.setdefault(own[use.words], []).append(name)
        print(f"attnmargin {use.words}")
        for answer, names in answers.items():
            print(
                f"    {answer}: {', '.join(names) if len(names) < len(results) else 'everywhere'}"
            )
    return [f"{words} with {name}: {answer}" for name, own in results.items()
            for words, answer in own.items() if answer.startswith("WRONG")]  # fmt: skip


def with_oldest(folder: Path, wheel: Path) -> list[str]:
    """Try the documents with the oldest versions of everything but Python."""
    oldest = Environment(folder / "environment")
    oldest.make()
    oldest.install(f"{wheel}[{','.join(EXTRAS)}]", constraints=PLACE.name)
    return try_oldest(oldest, folder / "pages")


def release(folder: Path, kept: Path | None, sdist: Path, wheel: Path) -> list[str]:
    """Check artefacts, try them everywhere, and save what was found; return what is wrong."""
    wrong = faults(sdist, wheel, folder / "again")
    found = environments(kept or folder / "environments", wheel)
    wrong += try_pages(found["bare"], found[NONE], found["plot"], folder / "pages")
    wrong += try_snippets(found, found[NONE], folder / "snippets")
    results = tried(found, folder / "uses")
    wrong += print_table(results)
    listed, gnu = inventory(found)
    for name in (NONE, ALL):
        print(write_bill(found[name], wheel, name))
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    record = {"date": date, "wheel": wheel.name, "python": sys.version.split()[0],
              "commands": results, "packages": listed}  # fmt: skip
    _RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return wrong + gnu


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="folder to keep them in, or to find them")
    parser.add_argument("--oldest", action="store_true", help="try the oldest versions instead")
    asked = parser.parse_args()
    with TemporaryDirectory() as name:
        sdist, wheel = build(ROOT / "dist")
        print(f"{sdist}\n{wheel}", flush=True)
        if asked.oldest:
            wrong = with_oldest(Path(name), wheel)
        else:
            wrong = release(Path(name), asked.environments, sdist, wheel)
    print("\n".join(wrong) if wrong else "All is right.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
