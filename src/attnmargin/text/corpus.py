"""Corpus: labelled texts of two or more classes, from tables and folders."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file
from attnmargin.base.seeds import seed_of
from attnmargin.base.streams import plain_suffix
from attnmargin.base.words import counted
from attnmargin.text.columns import choose_columns, split_column
from attnmargin.text.folders import folder_texts
from attnmargin.text.source import NEEDS, Columns, Source, json_source, parquet_source
from attnmargin.text.tables import table_source

_POSITIVE = ("1", "+1", "pos", "positive", "true", "yes")
# More different labels are not classes.
_MOST_CLASSES = 100
_JSON = (".jsonl", ".ndjson", ".json")
_TABLES = (".csv", ".tsv", ".tab", ".txt", "")
_KINDS = ".csv, .tsv, .txt, .jsonl, .parquet"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Summarised):
    """n texts with labels 0, 1, …; ``classes`` holds the names of the labels."""

    texts: list[str]
    labels: NDArray[np.int64]  # (n,)
    classes: tuple[str, ...]  # of two, the positive one is last
    splits: list[str] | None = None  # one per text, such as "train" and "test"
    columns: tuple[str, str] | None = None  # of texts and labels, in the table that was read

    def summary(self) -> dict[str, str]:
        """Return the numbers of texts, by class."""
        counts = {name: f"{int((self.labels == k).sum()):,}" for k, name in enumerate(self.classes)}
        return {"texts": f"{len(self):,}", **{f"class {k}": v for k, v in counts.items()}}

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, keep: Iterable[int] | NDArray[Any]) -> "Corpus":
        """Select some of the texts."""
        places = [int(i) for i in keep]
        splits = None if self.splits is None else [self.splits[i] for i in places]
        texts = [self.texts[i] for i in places]
        return Corpus(texts, self.labels[places], self.classes, splits, self.columns)

    def against(self, positive: str) -> "Corpus":
        """Compare one class with the rest, which becomes the negative class.

        Example:
            >>> import attnmargin as am, numpy as np
            >>> own = am.text.Corpus(["a", "b", "c"], np.array([0, 1, 2]), ("bad", "fair", "good"))
            >>> own.against("fair").classes, own.against("fair").labels.tolist()
            (('not fair', 'fair'), [0, 1, 0])
        """
        if positive not in self.classes:
            raise InputError("positive", repr(positive), f"one of {', '.join(self.classes[:20])}")
        place = self.classes.index(positive)
        rest = self.classes[1 - place] if len(self.classes) == 2 else f"not {positive}"
        labels = (self.labels == place).astype(np.int64)
        return Corpus(self.texts, labels, (rest, positive), self.splits, self.columns)

    def split(self, name: str) -> "Corpus":
        """Select the texts of one split."""
        if self.splits is None or name not in self.splits:
            found = "none" if self.splits is None else ", ".join(sorted(set(self.splits)))
            raise InputError("split", repr(name), f"one of the splits of the data: {found}")
        return self.part(i for i, own in enumerate(self.splits) if own == name)


def read_corpus(
    path: str | Path,
    text: str | None = None,
    label: str | None = None,
    *,
    drop: Iterable[object] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Corpus:
    """Read labelled texts from ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``, or a folder.

    A folder has a folder per class, such as ``pos/*.txt`` and ``neg/*.txt``, directly or inside
    ``train`` and ``test``. Tables may have a column ``split``. Any file but ``.parquet`` may be
    compressed by gzip. What the arguments leave open is found, and checked on every row.

    Args:
        text, label: column names, or numbers from 1 on. By default ``text`` and ``label``, or the
            only column with texts and the only one with few different values.
        drop: labels whose rows are skipped, such as a neutral class; ``""`` skips missing ones.
        delimiter: what stands between the cells of a table, one character, or "tab".
        encoding: of the text, such as "latin-1"; by default UTF-8, or what a byte order mark says.
        header: whether the first row of a table names the columns.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "reviews.csv")
        >>> rows = "1;a wonderful film\\n0;boring, and long\\n"
        >>> _ = path.write_text("stars;review\\n" + 2 * rows)
        >>> corpus = am.text.read_corpus(path)
        >>> corpus.columns, corpus.labels.tolist(), corpus.classes
        (('review', 'stars'), [1, 0, 1, 0], ('0', '1'))
    """
    path = Path(path)
    dropped = {_name(value) for value in drop}
    if path.is_dir():
        return _from_folder(path, encoding, dropped)
    if path.exists():
        check_file(path, needs=NEEDS)
    kind = plain_suffix(path)
    if kind == ".parquet":
        source = parquet_source(path)
    elif kind in _JSON:
        source = json_source(path, encoding)
    elif kind in _TABLES:
        wanted = {name for name in (text, label) if name is not None}
        source = table_source(
            path, wanted=wanted, delimiter=delimiter, encoding=encoding, header=header
        )
    else:
        raise InputError("file", f"{path!s:.200}", f"a folder, or a file of {_KINDS}")
    return _from_table(source, text, label, dropped)


def split_corpus(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus]:
    """Split texts into training and test: by the splits of the data, or a random share."""
    if corpus.splits is not None and {"train", "test"} <= set(corpus.splits):
        return corpus.split("train"), corpus.split("test")
    if not 0.0 < share < 1.0:
        raise InputError("share", f"{share:g}", "a share above 0 and below 1")
    order = np.random.default_rng(seed_of("text split", base=seed)).permutation(len(corpus))
    count = max(1, round(share * len(corpus)))
    if count >= len(corpus):
        raise InputError("file", counted(len(corpus), "text"), "enough to train and to test")
    return corpus.part(order[count:]), corpus.part(order[:count])


def between_lengths(corpus: Corpus, least: int, most: int) -> Corpus:
    """Keep the texts of ``least`` to ``most`` characters, both included."""
    return corpus.part(i for i, text in enumerate(corpus.texts) if least <= len(text) <= most)


def balanced(corpus: Corpus, seed: int = 0, most: int | None = None) -> Corpus:
    """Balance the classes by dropping random texts of the larger ones.

    Args:
        most: keep at most so many texts of a class; default: as many as the smallest has.
    """
    rng = np.random.default_rng(seed_of("balance", base=seed))
    members = (np.flatnonzero(corpus.labels == label) for label in range(len(corpus.classes)))
    places = [rng.permutation(own) for own in members]
    count = min(len(part) for part in places)
    if most is not None:
        check_whole(most=most)
        count = min(count, most)
    return corpus.part(np.sort(np.concatenate([part[:count] for part in places])))


def overlap(train: Corpus, test: Corpus) -> int:
    """Count the test texts that occur word for word in training."""
    known = set(train.texts)
    return sum(text in known for text in test.texts)


def _from_table(source: Source, text: str | None, label: str | None, drop: set[str]) -> Corpus:
    if not source.head or not source.head[0]:
        raise InputError("file", f"{source.path!s:.200} without rows", "labelled texts")
    texts, labels = choose_columns(source, text, label)
    split = split_column(source)
    places = (
        [texts, labels] if split is None or split in (texts, labels) else [texts, labels, split]
    )
    own, raw, *rest = source.read(places)
    names = _names(raw)
    if drop:
        keep = [name not in drop for name in names]
        own, names, *rest = [list(compress(column, keep)) for column in (own, names, *rest)]
    _check_labels(names, source.path)
    _check_texts(own, source.path)
    splits = [str(value or "") for value in rest[0]] if rest else []
    columns = (source.names[texts], source.names[labels])
    return _corpus([own, names, splits], source.path, columns)


def _from_folder(path: Path, encoding: str | None, drop: set[str]) -> Corpus:
    rows = [row for row in folder_texts(path, encoding) if row[1] not in drop]
    empty = next((file for own, _, _, file in rows if own.strip() == ""), None)
    if empty is not None:
        raise InputError("file", f"{empty!s:.200} without text", "text in every file")
    columns = [[row[place] for row in rows] for place in range(3)]
    return _corpus(columns, path, None)


def _corpus(columns: Columns, path: Path, names: tuple[str, str] | None) -> Corpus:
    """Number the classes of texts, labels and splits."""
    texts, raw, splits = columns
    classes = _classes(set(raw), path)
    number = {name: k for k, name in enumerate(classes)}
    labels = np.fromiter((number[value] for value in raw), np.int64, len(raw))
    return Corpus(texts, labels, classes, splits if any(splits) else None, names)


def _names(raw: list[Any]) -> list[str]:
    """Convert labels to words, each value once."""
    known: dict[tuple[type, Any], str] = {}
    found = []
    try:
        for value in raw:
            key = (type(value), value)
            if key not in known:
                known[key] = _name(value)
            found.append(known[key])
    except TypeError:
        needs = "words or numbers as labels"
        raise InputError("label", f"a {type(value).__name__} as a label", needs) from None
    return found


def _name(value: Any) -> str:
    """Convert a label to a word; 1.0 becomes 1, and None is no word."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def _check_labels(names: list[str], path: Path) -> None:
    if "" in names:
        got = f"{path!s:.200}, row {names.index('') + 1} without a label"
        raise InputError("drop", got, "labelled rows, or '' among the labels to drop")


def _check_texts(texts: list[Any], path: Path) -> None:
    try:
        if all(map(str.strip, texts)):
            return
    except TypeError:
        pass
    place = next(i for i, own in enumerate(texts) if not isinstance(own, str) or not own.strip())
    raise InputError("file", f"{path!s:.200}, row {place + 1} without text", "text in every row")


def _classes(found: set[str], path: Path) -> tuple[str, ...]:
    """Order the classes by name or number; of two, the positive one comes last."""
    if not 2 <= len(found) <= _MOST_CLASSES:
        shown = ", ".join(f"{name:.40}" for name in sorted(found)[:6]) or "none"
        got = f"{path!s:.200} with {counted(len(found), 'class', 'classes')} ({shown})"
        raise InputError(
            "label", got, f"the column of the labels, with 2 to {_MOST_CLASSES} classes"
        )
    ordered = sorted(found, key=_rank)
    likely = [name for name in ordered if name.lower() in _POSITIVE]
    if len(ordered) == 2 and likely == ordered[:1]:
        ordered.reverse()
    return tuple(ordered)


def _rank(name: str) -> tuple[float, str]:
    """Sort numbers by size, and words after them."""
    try:
        number = float(name)
    except ValueError:
        number = np.nan
    return (number if np.isfinite(number) else np.inf), name
