"""Every command, with and without what needs an extra."""

import json
from pathlib import Path
from shlex import split
from typing import NamedTuple, final

from tests.release.environments import Environment


@final
class Use(NamedTuple):
    """A command line, and the extras that it needs."""

    words: str
    needs: tuple[str, ...] = ()


# In this order: some read what those before them wrote.
USES = (
    Use("--version"),
    Use("--help"),
    Use("doctor"),
    Use("completion bash"),
    Use("demo --out demo", ("plot",)),
    Use("predict data.npz"),
    Use("predict data.npz --verify --html predict.html", ("plot",)),
    Use("explore --html explore.html"),
    Use("explore data.npz --html own.html"),
    Use("solve data.npz --out solution.npz"),
    Use("solve data.npz --norm nuc"),
    Use("solve data.npz --norm 3"),
    Use("solve data.npz --norm max"),
    Use("verify solution.npz"),
    Use("margins data.npz"),
    Use("margins data.npz --html margins.html", ("plot",)),
    Use("train data.npz --steps 50"),
    Use("graph next.jsonl"),
    Use("graph next.jsonl --next 'a b' --html graph.html"),
    Use("graph next.jsonl --graphml graph.xml", ("graph",)),
    Use("tokens reviews.csv --least 1 --statistics-only --no-stem"),
    Use("tokens reviews.csv --least 1 --statistics-only", ("text",)),
    Use("tokens reviews.csv --least 1 --epochs 1 --no-stem"),
    Use("tokens reviews.csv --least 1 --epochs 1 --html tokens.html", ("text", "plot")),
    Use("tokens reviews.parquet --least 1 --statistics-only", ("text",)),
    Use("train-text reviews.csv --epochs 1 --width 12 --hidden 8 --length 8"),
    Use("train-text reviews.csv --vocab vocab.txt --epochs 1 --width 12 --hidden 8 --length 8",
        ("text",)),
    Use("heads minilm texts.txt --layer 0 --head 0 --draws 1", ("models", "minilm")),
    Use("reproduce --list"),
    Use("reproduce C:fig2 --trials 1 --out results", ("plot",)),
    Use("sweep sweep.toml --jobs 1"),
    Use("sweep sweep.toml --jobs 2 --out two"),
    Use("sweep sweep.toml --engine ray --jobs 1 --out ray", ("ray",)),
    Use("sweep sweep.toml --engine dask --jobs 1 --out dask", ("dask",)),
    Use("collect sweep"),
)  # fmt: skip

_DRIVER = Path(__file__).with_name("driver.py")
_WRITE_DATA = """
import attnmargin as am
am.random_data(3, 3, 4, name="release", min_gap=0.1).save("data.npz")
"""


def prepare(place: Path, environment: Environment) -> None:
    """Write the files that the commands read; ``.parquet`` with the pyarrow of this Python."""
    from pyarrow import Table
    from pyarrow.parquet import write_table

    environment.run("-c", _WRITE_DATA, place=place).check_returncode()
    texts = [f"a {word} film number {k}" for k in range(20) for word in ("good", "bad")]
    labels = [k % 2 for k in range(40)]
    rows = "\n".join(f"{text},{label}" for text, label in zip(texts, labels, strict=True))
    (place / "reviews.csv").write_text(f"text,label\n{rows}\n")
    write_table(Table.from_pydict({"text": texts, "label": labels}), place / "reviews.parquet")
    (place / "texts.txt").write_text("A good film.\nA bad film.\n")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "good", "bad", "film", "number"]
    (place / "vocab.txt").write_text("\n".join(words) + "\n")
    (place / "next.jsonl").write_text(
        '{"tokens": ["a", "b"], "next": "a"}\n{"tokens": ["b", "a"], "next": "b"}\n'
    )
    (place / "sweep.toml").write_text(
        'compute = "solve"\ntrials = 2\n[grid]\nn = 3\nT = 3\nd = [3, 4]\n'
    )


def extras_in(environment: Environment, place: Path) -> set[str]:
    """Ask the doctor which extras are complete in an environment."""
    record = json.loads(environment.run("-m", "attnmargin", "doctor", "--json", place=place).stdout)
    return {own["extra"] for own in record["extras"] if not own["missing"]}


def try_uses(environment: Environment, place: Path) -> dict[str, str]:
    """Run every use in an environment: each "works", "asks for" an extra, or is "WRONG"."""
    extras = extras_in(environment, place)
    lines = json.dumps([split(use.words) for use in USES])
    done = environment.run("-I", _DRIVER, lines, place=place)
    if done.returncode:
        raise RuntimeError(done.stderr)
    outcomes = json.loads(done.stdout.splitlines()[-1])
    return {
        use.words: judged(use, code, told, extras)
        for use, (code, told) in zip(USES, outcomes, strict=True)
    }


def judged(use: Use, code: int, told: str, extras: set[str]) -> str:
    """Judge the exit code and the standard error of a use where some extras are installed.

    >>> demo, line = Use("demo", ("plot",)), 'attnmargin: …: pip install "attnmargin[plot]"'
    >>> judged(demo, 2, line, set()), judged(demo, 0, "", {"plot"})
    ('asks for plot', 'works')
    >>> judged(Use("doctor"), 1, "broken", set())
    "WRONG: exit 1, ['broken']"
    """
    lines = [line for line in told.splitlines() if "compiling the" not in line]
    if code == 0 and "Traceback" not in told:
        return "works"  # another extra may bring the package as well
    if extras.issuperset(use.needs):
        return f"WRONG: exit {code}, {lines[-1:]}"
    asked = [name for name in use.needs if f'pip install "attnmargin[{name}]"' in told]
    if code == 2 and len(lines) == 1 and asked:
        return f"asks for {asked[0]}"
    return f"WRONG: exit {code}, {lines[-1:]}; needs {', '.join(use.needs)}"
