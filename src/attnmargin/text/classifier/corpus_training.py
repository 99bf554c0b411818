"""From a corpus to a tested classifier: split, token ids, training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from attnmargin.base.display import Summarised
from attnmargin.base.progress import Progress
from attnmargin.text.classifier.training import Recipe, TextRun, train_text
from attnmargin.text.classifier.transformer import Shape
from attnmargin.text.corpus import Corpus, overlap, split_corpus
from attnmargin.text.pieces import Pieces, word_list, word_pieces

# Without a given vocabulary, words that occur less often are unknown.
_LEAST = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class CorpusRun(Summarised):
    """A classifier trained on one part of a corpus and tested on the other."""

    run: TextRun
    classes: tuple[str, ...]
    train: Corpus
    test: Corpus
    pieces: Pieces  # of the test texts

    def summary(self) -> dict[str, str]:
        """Return the sizes of both parts and the accuracy, by name."""
        return {
            "texts": f"{len(self.train):,} to train, {len(self.test):,} to test",
            **self.run.summary(),
        }

    @property
    def overlap(self) -> int:
        """Number of test texts that occur word for word in training."""
        return overlap(self.train, self.test)


def train_corpus(
    corpus: Corpus,
    shape: dict[str, Any],
    recipe: Recipe,
    *,
    vocabulary: Path | None = None,
    share: float = 0.2,
    out: Path | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> CorpusRun:
    """Split a corpus, train a classifier on one part, and test it on the other.

    Args:
        shape: the arguments of :class:`Shape`, except the vocabulary and the classes.
        vocabulary: a WordPiece file; the words of the training texts by default.
        share: fraction of texts for the test, unless the corpus has a column ``split``.
        out: a folder for checkpoints, from which a stopped run resumes.
    """
    train, test = split_corpus(corpus, share, recipe.seed)
    words: Path | list[str] = vocabulary or word_list(train.texts, _LEAST)
    cache = None if out is None else out / "cache"
    first, second = (word_pieces(part, words, shape["length"], cache) for part in (train, test))
    sizes = Shape(len(first.vocabulary), classes=len(corpus.classes), **shape)
    run = train_text(first, second, sizes, recipe, out=out, device=device, progress=progress)
    return CorpusRun(run, corpus.classes, train, test, second)
