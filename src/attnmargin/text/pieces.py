"""Texts as token ids: WordPiece from a vocabulary file, or the words of the texts themselves."""

import hashlib
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.base.files import make_folder, read_whole
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.base.ragged import part_of, row_of, starts_of
from attnmargin.text.corpus import Corpus

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pieces(Summarised):
    """Labelled sequences of token ids; ``word_pieces`` puts [CLS] first and [SEP] last."""

    ids: NDArray[Any]  # (total,)
    start: NDArray[np.int64]  # (n + 1,)
    labels: NDArray[np.int64]  # (n,)
    vocabulary: list[str]

    def summary(self) -> dict[str, str]:
        """Return the numbers of texts and tokens, by name."""
        return {
            "texts": f"{len(self):,}",
            "tokens": f"{len(self.ids):,}",
            "vocabulary": f"{len(self.vocabulary):,}",
        }

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens per text, ``(n,)``."""
        return np.diff(self.start)

    def __len__(self) -> int:
        return len(self.labels)

    def words(self, i: int) -> list[str]:
        """Return the tokens of one text."""
        return [self.vocabulary[k] for k in self.row(i)]

    def row(self, i: int) -> NDArray[Any]:
        """Return the token ids of one text."""
        return row_of(self.ids, self.start, i)

    def part(self, keep: NDArray[Any]) -> "Pieces":
        """Select texts by index or by a bool array ``(n,)``."""
        entries, start = part_of(self.start, keep)
        return Pieces(self.ids[entries], start, self.labels[keep], self.vocabulary)

    def digest(self) -> str:
        """Return a short digest of the content."""
        key = hashlib.sha256("\x1f".join(self.vocabulary).encode(errors="surrogatepass"))
        for part in (self.ids, self.start, self.labels):
            key.update(np.ascontiguousarray(part, np.int64).tobytes())
        return key.hexdigest()[:24]

    def save(self, path: str | Path) -> Path:
        """Write a ``.npz`` file."""
        words = np.array(self.vocabulary)
        arrays = {"ids": self.ids, "start": self.start, "labels": self.labels, "words": words}
        return write_npz(path, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote."""
        stored = read_npz(path, needs=("ids", "start", "labels", "words"))
        words = [str(word) for word in stored["words"]]
        return cls(stored["ids"], stored["start"], stored["labels"], words)


def word_pieces(
    corpus: Corpus,
    vocabulary: str | Path | Sequence[str],
    length: int = 512,
    cache: str | Path | None = None,
) -> Pieces:
    """Convert texts to token ids, at most ``length`` per text, [CLS] and [SEP] included.

    Args:
        vocabulary: a file with one word piece per line, for the package tokenizers (lower case, as
            in bert-base-uncased); or a list of words, see :func:`word_list`.
        cache: a folder that keeps ids, keyed by the content of texts and vocabulary.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> corpus = am.text.Corpus(["a good film", "bad"], np.array([1, 0]), ("neg", "pos"))
        >>> pieces = am.text.word_pieces(corpus, am.text.word_list(corpus.texts))
        >>> [pieces.vocabulary[k] for k in pieces.ids[:5]]
        ['[CLS]', 'a', 'good', 'film', '[SEP]']
    """
    check_whole(3, length=length)
    words = read_vocabulary(vocabulary) if isinstance(vocabulary, str | Path) else list(vocabulary)
    missing = [word for word in SPECIAL if word not in words]
    if missing:
        raise InputError("vocabulary", f"one without {', '.join(missing)}", "all special tokens")
    if cache is None:
        return _split(corpus, words, length, isinstance(vocabulary, str | Path))
    return _cached(corpus, words, length, isinstance(vocabulary, str | Path), Path(cache))


def _cached(corpus: Corpus, words: list[str], length: int, pieces: bool, folder: Path) -> Pieces:
    key = hashlib.sha256(f"{length} {pieces}".encode())
    for part in (words, corpus.texts, corpus.labels.tolist()):
        for item in part:
            key.update(f"\x1f{item}".encode(errors="surrogatepass"))
    path = folder / f"pieces-{key.hexdigest()[:24]}.npz"
    if path.is_file():
        return Pieces.load(path)
    make_folder(folder, "cache")
    found = _split(corpus, words, length, pieces)
    found.save(path)
    return found


def read_vocabulary(path: str | Path) -> list[str]:
    """Read the word pieces of a file, one per line."""
    needs = "one word piece per line"
    try:
        return read_whole(path, "vocabulary", needs).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError("vocabulary", f"{path} ({error.reason})", needs) from None


def word_list(texts: Sequence[str], least: int = 1) -> list[str]:
    """List the words that occur at least ``least`` times, most frequent first, as a vocabulary.

    Example:
        >>> import attnmargin as am
        >>> am.text.word_list(["good good film", "film"], least=2)
        ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'good', 'film']
    """
    counts = Counter(word for text in texts for word in _words(text))
    kept = [word for word, count in counts.most_common() if count >= least]
    return [*SPECIAL, *(word for word in kept if word not in SPECIAL)]


def _words(text: str) -> list[str]:
    return re.findall(word_of(r"\w", text) + r"|[^\w\s]", text.lower())


def word_of(letter: str, text: str) -> str:
    r"""Build a regular expression for the words of a text: runs of letters with their marks.

    A mark belongs to the letter before it (vowel signs of Indian scripts, separate accents), but
    ``\w`` does not match it.

    Example:
        >>> import re
        >>> from attnmargin.text.pieces import word_of
        >>> text = "अच्छी, यह"
        >>> re.findall(word_of(r"\w", text), text)
        ['अच्छी', 'यह']
    """
    # Matching marks is five times slower.
    return f"{letter}+" if _western(text) else f"{letter}+(?:[{_marks()}]+{letter}*)*"


def _western(text: str) -> bool:
    """Test whether all characters are in Latin-1, which has no marks."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _marks() -> str:
    every = map(chr, range(sys.maxunicode + 1))
    return "".join(c for c in every if unicodedata.category(c).startswith("M"))


def _split(corpus: Corpus, words: list[str], length: int, pieces: bool) -> Pieces:
    rows = _by_pieces(corpus.texts, words) if pieces else _by_words(corpus.texts, words)
    first, last = words.index("[CLS]"), words.index("[SEP]")
    parts = [[first, *row[: length - 2], last] for row in rows]
    start = starts_of([len(part) for part in parts])
    kind = np.uint16 if len(words) <= 1 << 16 else np.int32
    ids = np.fromiter((k for part in parts for k in part), kind, int(start[-1]))
    return Pieces(ids, start, corpus.labels, words)


def _by_words(texts: list[str], words: list[str]) -> list[list[int]]:
    place = {word: k for k, word in enumerate(words)}
    unknown = place["[UNK]"]
    return [[place.get(word, unknown) for word in _words(text)] for text in texts]


def _by_pieces(texts: list[str], words: list[str]) -> list[list[int]]:
    found = _tokenizer(words).encode_batch(texts, add_special_tokens=False)
    return [own.ids for own in found]


def split_words(texts: list[str], words: list[str]) -> list[list[str]]:
    """Split every text into the word pieces of a vocabulary."""
    found = _tokenizer(words).encode_batch(texts, add_special_tokens=False)
    return [own.tokens for own in found]


def _tokenizer(words: list[str]) -> Any:
    if "[UNK]" not in words:
        raise InputError("vocabulary", "one without [UNK]", "all special tokens")
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    except ImportError as error:
        raise MissingPackageError("splitting into word pieces", "attnmargin[text]") from error
    place = {word: k for k, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(place, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
