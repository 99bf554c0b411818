"""Corpus: labelled texts of two or more classes, from tables and folders."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.base.files import check_file, most_bytes, read_whole
from attnmargin.base.jsonl import LONGEST, bounded_lines, json_lines
from attnmargin.base.seeds import seed_of
from attnmargin.base.words import counted

Row = dict[str, Any]
_NEEDS = "a file of texts"
# Bytes that a row of a table takes in memory beside its words.
_ROW = 100
_POSITIVE = ("1", "+1", "pos", "positive", "true", "yes")
# With more distinct labels, the column is hardly one of classes.
_MOST_CLASSES = 100


@final
@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Summarised):
    """n texts with labels 0, 1, …; ``classes`` holds the names of the labels."""

    texts: list[str]
    labels: NDArray[np.int64]  # (n,)
    classes: tuple[str, ...]  # of two, the positive one is last
    splits: list[str] | None = None  # one per text, such as "train" and "test"

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
        return Corpus([self.texts[i] for i in places], self.labels[places], self.classes, splits)

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
        return Corpus(self.texts, labels, (rest, positive), self.splits)

    def split(self, name: str) -> "Corpus":
        """Select the texts of one split."""
        if self.splits is None or name not in self.splits:
            found = "none" if self.splits is None else ", ".join(sorted(set(self.splits)))
            raise InputError("split", repr(name), f"one of the splits of the data: {found}")
        return self.part(i for i, own in enumerate(self.splits) if own == name)


def read_corpus(
    path: str | Path,
    text: str = "text",
    label: str = "label",
    *,
    drop: Iterable[object] = (),
) -> Corpus:
    """Read labelled texts from ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``, or a folder.

    A folder has the layout of the official review data: ``pos/*.txt`` and ``neg/*.txt``, directly
    or inside ``train`` and ``test``. Tables may have a column ``split``.

    Args:
        text, label: column names.
        drop: labels whose rows are skipped, such as a neutral class.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "reviews.csv")
        >>> _ = path.write_text("text,label\\nwonderful,1\\nboring,0\\n")
        >>> corpus = am.text.read_corpus(path)
        >>> corpus.texts, corpus.labels.tolist(), corpus.classes
        (['wonderful', 'boring'], [1, 0], ('0', '1'))
    """
    path = Path(path)
    if path.is_dir():
        rows: Iterator[Row] = _folder(path)
        text, label = "text", "label"
    else:
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            needs = f"a folder, or a file of {', '.join(_READERS)}"
            raise InputError("file", f"{path}", needs)
        rows = reader(check_file(path, needs=_NEEDS) if path.exists() else path)
    return _corpus(rows, text, label, {_name(value) for value in drop}, path)


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
    labels = range(len(corpus.classes))
    places = [rng.permutation(np.flatnonzero(corpus.labels == label)) for label in labels]
    count = min(len(part) for part in places)
    if most is not None:
        check_whole(most=most)
        count = min(count, most)
    return corpus.part(np.sort(np.concatenate([part[:count] for part in places])))


def overlap(train: Corpus, test: Corpus) -> int:
    """Count the test texts that occur word for word in training."""
    known = set(train.texts)
    return sum(text in known for text in test.texts)


def _corpus(rows: Iterator[Row], text: str, label: str, drop: set[str], path: Path) -> Corpus:
    texts, raw, splits = [], [], []
    try:
        for number, row in enumerate(rows, 1):
            for column in (text, label):
                if column not in row:
                    found = ", ".join(map(str, row)) or "nothing"
                    raise InputError("file", f"{path} with columns {found}", f"a column {column!r}")
            value = row[label]
            if value is None or str(value).strip() == "":
                raise InputError("file", f"{path}, row {number} without a label", "labelled rows")
            if _name(value) in drop:
                continue
            if not isinstance(row[text], str) or not row[text].strip():
                raise InputError("file", f"{path}, row {number} without text", "text in every row")
            texts.append(row[text])
            raw.append(_name(value))
            splits.append(str(row.get("split", "")))
    except UnicodeDecodeError as error:
        raise InputError("file", f"{path} ({error.reason})", "text in UTF-8") from None
    except OSError as error:
        raise InputError("file", f"{path!s:.200} ({error.strerror or error})", _NEEDS) from None
    classes = _classes(raw, path)
    labels = np.array([classes.index(value) for value in raw], dtype=np.int64)
    return Corpus(texts, labels, classes, splits if any(splits) else None)


def _name(value: Any) -> str:
    """Convert a label to a word; 1.0 becomes 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _classes(raw: list[str], path: Path) -> tuple[str, ...]:
    """Return the classes in order; of two, the positive one is last."""
    found = sorted(set(raw), key=_rank)
    if not 2 <= len(found) <= _MOST_CLASSES:
        shown = ", ".join(found[:6]) + ", …" * (len(found) > 6) or "none"
        got = f"{path} with {counted(len(found), 'class', 'classes')} ({shown})"
        raise InputError("file", got, f"2 to {_MOST_CLASSES} classes in the column of labels")
    if len(found) == 2 and found[0].lower() in _POSITIVE and found[1].lower() not in _POSITIVE:
        return found[1], found[0]
    return tuple(found)


def _rank(label: str) -> tuple[float, str]:
    """Sort numbers by size, and words after them."""
    try:
        number = float(label)
    except ValueError:
        number = np.nan
    return (number if np.isfinite(number) else np.inf), label


def _table(delimiter: str) -> Callable[[Path], Iterator[Row]]:
    def read(path: Path) -> Iterator[Row]:
        csv.field_size_limit(LONGEST)
        with path.open(encoding="utf-8-sig", newline="") as stream:
            try:
                lines = bounded_lines(stream, path)
                yield from csv.DictReader(lines, delimiter=delimiter, strict=True)
            except csv.Error as error:
                raise InputError("file", f"{path} ({error})", "a table of texts") from None

    return read


def _json_lines(path: Path) -> Iterator[Row]:
    return (row for _, row in json_lines(path, _NEEDS))


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPackageError("reading .parquet", "attnmargin[text]") from error
    most = most_bytes(path.stat().st_size)
    batches = _batches(pyarrow.parquet, path)
    while True:
        try:
            rows = next(batches, None)
        except Exception as error:  # pyarrow raises nearly anything on damaged files
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError("file", f"{path} ({reason:.80})", "a .parquet file") from None
        if rows is None:
            return
        most -= sum(_ROW + len(str(value)) for row in rows for value in row.values())
        if most < 0:
            raise InputError("file", f"{path}, a small file of too many rows", "a .parquet file")
        yield from rows


def _batches(parquet: Any, path: Path) -> Iterator[list[Row]]:
    """Yield some rows at a time, without the columns that nobody reads."""
    with parquet.ParquetFile(path) as stored:
        plain = [own.name for own in stored.schema_arrow if own.type.num_fields == 0]
        for batch in stored.iter_batches(1024, columns=plain):
            yield batch.to_pylist()


def _folder(path: Path) -> Iterator[Row]:
    """Yield the texts of the official review layout, or of one split of it."""
    roots = [path / name for name in ("train", "test") if (path / name).is_dir()] or [path]
    found = False
    for root in roots:
        for label in ("neg", "pos"):
            for file in sorted((root / label).glob("*.txt")):
                found = True
                row = {"text": read_whole(file, "file", _NEEDS).decode(), "label": label}
                yield row | ({"split": root.name} if root != path else {})
    if not found:
        raise InputError("file", f"the folder {path}", "pos/*.txt and neg/*.txt within it")


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": _table(","),
    ".tsv": _table("\t"),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
