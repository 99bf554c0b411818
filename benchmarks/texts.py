"""Token evidence of large corpora: seconds, processor seconds and memory, beside scikit-learn.

    python -m benchmarks.texts [--data imdb.parquet]

``attnmargin tokens FILE --statistics-only`` is run as a process of its own: 50,000 planted texts of
230 words, a million of 12, and the file of ``--data``. The rival counts the same words of the same
texts by ``CountVectorizer`` with binary counts, once per class, and neither stems nor tests them.
Processor seconds count both cores, and change less than seconds on a machine that is busy.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save

# Texts and their mean number of words.
SIZES = ((50_000, 230), (1_000_000, 12))


def ours(file: Path) -> dict[str, int]:
    """Count and test the tokens of a file as the command does."""
    found = am.text.class_importance(am.text.read_corpus(file))[-1]
    evidence = found.evidence
    ends = (evidence.difference, evidence.alpha)
    return {"tokens": len(ends[0][0]), "evidence": int(evidence.found.sum())}


def rival(file: Path) -> dict[str, int]:
    """Count in how many texts of each class the words of a file are, by scikit-learn."""
    from sklearn.feature_extraction.text import CountVectorizer

    corpus = am.text.read_corpus(file)
    counts = CountVectorizer(binary=True).fit_transform(corpus.texts)
    found = [counts[corpus.labels == y].sum(0) for y in range(len(corpus.classes))]
    return {"tokens": found[0].shape[1]}


WAYS = {"attnmargin": ours, "scikit-learn": rival}


def measured(way: str, file: Path) -> dict[str, Any]:
    """Run one way in this process, imports included."""
    start = time.perf_counter()
    found = WAYS[way](file)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"way": way, "seconds": time.perf_counter() - start,
            "processor seconds": usage.ru_utime + usage.ru_stime,
            "peak GB": usage.ru_maxrss / 1e6, **found}  # fmt: skip


def apart(way: str, file: Path, name: str) -> dict[str, Any]:
    """Run one way in a process of its own, so that memory is its own."""
    words = [sys.executable, "-m", "benchmarks.texts", "--way", way, "--data", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    row: dict[str, Any] = {"texts": name, **json.loads(done.stdout)}
    print(f"{name:<28} {way:<13} {row['seconds']:6.1f} s {row['processor seconds']:6.1f} s of "
          f"processors {row['peak GB']:5.2f} GB")  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--way", choices=list(WAYS))
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.way:
        print(json.dumps(measured(chosen.way, chosen.data)))
        return
    rows = []
    with TemporaryDirectory() as folder:
        for n, length in SIZES:
            file = am.text.planted_corpus(n, length=length).write(Path(folder) / f"{n}.csv")
            rows += [apart(way, file, f"{n:,} planted of {length}") for way in WAYS]
    if chosen.data is not None:
        rows += [apart(way, chosen.data, chosen.data.name) for way in WAYS]
    save({**machine(), "corpora": rows}, chosen.out / "texts.json")


if __name__ == "__main__":
    main()
