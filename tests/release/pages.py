"""What the documents show, run in clean environments."""

import shutil
from pathlib import Path

from tests.release.environments import ROOT, Environment

_DOCTEST = ("-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS")
# What works with torch, numpy and scipy alone.
_BARE = """
import attnmargin as am
data = am.random_data(3, 3, 4, name="bare", min_gap=0.1)
problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
for norm in ("fro", "nuc", 3.0, "spectral", "max"):
    solution = am.solve(problem, norm)
    assert solution.status == "optimal", (norm, solution.status)
prediction = am.predict(data)
assert am.confirm(prediction).agrees
am.train(data, "KQ", steps=20), am.train(data, method="mirror", p=3.0, steps=20)
am.selections.local_selections(data)
import sys
assert not {"numba", "click", "rich", "joblib", "threadpoolctl"} & set(sys.modules)
"""


def try_pages(bare: Environment, none: Environment, plot: Environment, place: Path) -> list[str]:
    """Run the library on its least, the README without extras, the quickstart with pictures."""
    return _tried(place, {
        "the library without dependencies but torch, numpy, scipy": (bare, ("-c", _BARE)),
        "README.md without extras": (none, (*_DOCTEST, "README.md")),
        "docs/quickstart.md": (plot, (*_DOCTEST, "quickstart.md")),
        "attnmargin demo": (plot, (bare.folder / "bin" / "attnmargin", "demo", "--out", "demo")),
    })  # fmt: skip


def try_oldest(oldest: Environment, place: Path) -> list[str]:
    """Run the doctor, the README, the quickstart and the demo with the oldest versions."""
    program = oldest.folder / "bin" / "attnmargin"
    return _tried(place, {
        "attnmargin doctor": (oldest, (program, "doctor")),
        "README.md": (oldest, (*_DOCTEST, "README.md")),
        "docs/quickstart.md": (oldest, (*_DOCTEST, "quickstart.md")),
        "attnmargin demo": (oldest, (program, "demo", "--out", "demo")),
    })  # fmt: skip


def _tried(place: Path, tries: dict[str, tuple[Environment, tuple[object, ...]]]) -> list[str]:
    """Run words in environments, in a folder with the documents; return what went wrong."""
    place.mkdir(parents=True)
    for page in ("README.md", "docs/quickstart.md"):
        shutil.copy(ROOT / page, place)
    wrong = []
    for name, (environment, words) in tries.items():
        done = environment.run(*words, place=place)
        print(f"{name}: {'right' if done.returncode == 0 else 'WRONG'}", flush=True)
        if done.returncode:
            wrong.append(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return wrong
