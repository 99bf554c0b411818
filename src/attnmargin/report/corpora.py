"""What was read from a file of texts, as records and sentences."""

from typing import Any

from attnmargin.text.corpus import Corpus


def corpus_record(corpus: Corpus) -> dict[str, Any]:
    """Describe the columns of a corpus, None for a folder, and its texts by class."""
    counts = ((name, int((corpus.labels == k).sum())) for k, name in enumerate(corpus.classes))
    columns = corpus.columns and dict(zip(("text", "label"), corpus.columns, strict=True))
    return {"columns": columns, "texts": dict(counts)}


def columns_sentence(record: dict[str, Any]) -> str:
    """Name the columns that were read, if they could be others.

    >>> columns_sentence({"columns": {"text": "review", "label": "sentiment"}})
    'text column: review, label column: sentiment'
    """
    columns = record["columns"]
    if columns is None or all(role == name for role, name in columns.items()):
        return ""
    return ", ".join(f"{role} column: {name}" for role, name in columns.items())
