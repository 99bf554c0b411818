"""The commands that write, and the small files that they read.

A command runs in a folder with ``in/``, its files, and ``out/``, where it writes. Paths are
relative, so that pages that quote their command are the same in every folder.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import final

import attnmargin as am
from attnmargin.sweeps.spec import read_spec
from tests.commands import write
from tests.texts import one_word_decides, reviews

_NEXT = [
    '{"tokens": ["a", "b", "c"], "next": "b"}', '{"tokens": ["b", "c", "a"], "next": "c"}',
    '{"tokens": ["c", "b", "a"], "next": "a"}', '{"tokens": ["a", "c", "b"], "next": "c"}',
]  # fmt: skip


@final
@dataclass(frozen=True)
class Target:
    """A command that writes.

    Args:
        words: its command line.
        finished: patterns of files that are never written again once they are there.
        training: a folder with the checkpoint of a run, whose epochs are never computed again.
        parallel: words that spread the work over processes.
    """

    name: str
    words: str
    finished: tuple[str, ...] = ()
    training: str | None = None
    parallel: str | None = None

    @property
    def resumes(self) -> bool:
        """Whether a stopped command goes on where it was."""
        return bool(self.finished) or self.training is not None


TARGETS = (
    Target("predict", "predict in/data.npz --steps 500 --html out/page.html "
                      "--out out/solution.npz --csv out/table.csv"),
    Target("solve", "solve in/data.npz --out out/solution.npz"),
    Target("train", "train in/data.npz --steps 300 --out out/run.npz"),
    Target("train-text", "train-text in/texts.csv --layers 1 --heads 1 --width 8 --hidden 8 "
                         "--batch 20 --length 16 --device cpu --epochs 6 --stop 2 --out out/run "
                         "--html out/page.html",
           finished=("run/cache/*.npz",), training="run"),
    Target("tokens", "tokens in/words.csv --least 1 --epochs 12 --width 8 --batch 20 --device cpu "
                     "--out out/run --html out/page.html", training="run"),
    Target("graph", "graph in/next.jsonl --html out/page.html --graphml out/graphs.graphml"),
    Target("reproduce", "reproduce D:lemma2 --trials 1 --jobs 1 --out out/results",
           finished=("results/*/*/points/*.npz",), parallel="--jobs 2"),
    Target("sweep", "sweep in/spec.toml --out out/sweep --jobs 1",
           finished=("sweep/points/*/*.npz",), parallel="--jobs 2"),
    Target("collect", "collect in/sweep --out out/table"),
    Target("heads", "heads in/model in/reviews.txt --layer 0 --queries 4 --draws 1 "
                    "--html out/page.html"),
    Target("explore", "explore in/data.npz --html out/page.html"),
    Target("demo", "demo --out out/demo"),
)  # fmt: skip


_SPEC = """
compute = "solve"
trials = 2
seed = {seed}

[grid]
n = 2
T = 3
d = [3, 4, 5, 6, 7, 8]
"""


def write_inputs(folder: Path, seed: int, heads: bool = True) -> None:
    """Write what the commands read; another seed gives other files of the same names."""
    folder.mkdir(parents=True)
    am.random_data(2, 3, 4, name="campaign", seed=seed, min_gap=0.05).save(folder / "data.npz")
    write(folder / "next.jsonl", _NEXT[seed:])
    for name, corpus in (("texts", reviews(40 + seed)), ("words", one_word_decides(40 + seed))):
        rows = zip(corpus.texts, corpus.labels, strict=True)
        write(folder / f"{name}.csv", ["text,label", *(f"{text},{y}" for text, y in rows)])
    (folder / "spec.toml").write_text(_SPEC.format(seed=seed))
    spec = read_spec(folder / "spec.toml")
    am.sweep(spec.function, spec.points, spec.trials, spec.seed, out=folder / "sweep", jobs=1)
    if heads:
        _write_model(folder, seed)


def _write_model(folder: Path, seed: int) -> None:
    from tests.models.instances import REVIEWS, minilm, small_model

    write(folder / "reviews.txt", list(REVIEWS)[: 4 - seed])
    tokenizer = minilm().tokenizer
    small_model("bert", vocab_size=tokenizer.vocab_size).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
