"""Reviews in the data folder: their location, and their token ids."""

from functools import lru_cache
from pathlib import Path

from attnmargin.base.errors import InputError
from attnmargin.text.corpus import Corpus, read_corpus

_ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl")
# Labels of neutral reviews, which the papers exclude.
NEUTRAL = (-1,)
NEEDS = "a folder with imdb.parquet (.csv, .tsv, .jsonl, or aclImdb) and vocab.txt"


@lru_cache(maxsize=2)
def find_reviews(folder: Path, name: str = "imdb", official: str = "aclImdb") -> Corpus:
    """Read a corpus of the folder: ``imdb.parquet`` and the like, or the official layout."""
    for path in (folder / official, *(folder / f"{name}{ending}" for ending in _ENDINGS)):
        if path.exists():
            return read_corpus(path, drop=() if name == "imdb" else NEUTRAL)
    needs = f"a folder with {name}.parquet (.csv, .tsv, .jsonl, or {official})"
    raise InputError("data", f"{folder} without {name}", needs)


def find_vocabulary(folder: Path) -> Path:
    """Find the word-piece file of the folder, whose name ends in ``vocab.txt``."""
    found = sorted(folder.glob("*vocab.txt"))
    if not found:
        raise InputError("data", f"{folder} without a vocabulary", NEEDS)
    return found[0]
