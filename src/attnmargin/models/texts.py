"""Texts as token ids that a model accepts."""

from collections.abc import Sequence
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.base.words import counted

# Models that count positions from the id of their padding token on.
_SHIFTED = ("camembert", "roberta", "xlm-roberta")
Texts = Sequence[str] | Sequence[Sequence[int]]


def token_rows(
    model: Any, texts: Texts, tokenizer: Any, length: int | None = None
) -> tuple[list[list[int]], list[list[str]]]:
    """Convert texts to ids and words, one list each per text.

    Args:
        texts: strings, or lists of token ids, which need no tokenizer.
        length: cut texts to so many tokens; by default a text that is too long is an error.
    """
    if isinstance(texts, str):
        raise InputError("texts", "one string", "a list of texts")
    rows = list(texts)
    if not rows:
        raise InputError("texts", "no text", "at least one")
    ids = [_ids(i, text, tokenizer) for i, text in enumerate(rows)]
    if length is not None:
        ids = [_cut(row, text, tokenizer, length) for row, text in zip(ids, rows, strict=True)]
    most, known = most_tokens(model), getattr(model.config, "vocab_size", None)
    for i, row in enumerate(ids):
        if most is not None and len(row) > most:
            got = f"text {i} of {counted(len(row), 'token')}"
            raise InputError("texts", got, f"at most {counted(most, 'token')} for this model")
        if known is not None and not 0 <= min(row) <= max(row) < known:
            wrong = next(k for k in row if not 0 <= k < known)
            raise InputError("texts", f"token id {wrong} in text {i}", f"ids from 0 to {known - 1}")
    return ids, [_words(row, tokenizer) for row in ids]


def most_tokens(model: Any) -> int | None:
    """Return the number of tokens that a model accepts, or None if it says nothing."""
    config = model.config
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and config.model_type in _SHIFTED:
        most -= (config.pad_token_id or 0) + 1
    return most


def _ids(i: int, text: Any, tokenizer: Any) -> list[int]:
    """Split one text; anything but a string has to be a list of ids."""
    if isinstance(text, str):
        if not text.strip():
            raise InputError("texts", f"an empty text at place {i}", "text")
        if tokenizer is None:
            raise InputError("tokenizer", "none for texts in words", "the tokenizer of the model")
        ids = _split(tokenizer, text, truncation=False, verbose=False)
    else:
        try:
            ids = [int(k) for k in text]
        except (TypeError, ValueError):
            got = f"a {type(text).__name__} at place {i}"
            raise InputError("texts", got, "strings, or lists of token ids") from None
    if not ids:
        raise InputError("texts", f"an empty text at place {i}", "at least one token")
    return ids


def _split(tokenizer: Any, text: str, **options: Any) -> list[int]:
    """Split one text by a tokenizer, whose own settings may be anything."""
    try:
        return [int(k) for k in tokenizer(text, padding=False, **options)["input_ids"]]
    except BaseException as error:  # whatever the files of a tokenizer lead to, panics in Rust too
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        got = f"one that fails ({error!s:.120})"
        raise InputError("tokenizer", got, "one that splits texts") from error


def _cut(ids: list[int], text: Any, tokenizer: Any, length: int) -> list[int]:
    """Cut one text to a number of tokens; a tokenizer keeps its closing tokens."""
    if len(ids) <= length:
        return ids
    if isinstance(text, str):
        return _split(tokenizer, text, truncation=True, max_length=length)
    return ids[:length]


def _words(ids: list[int], tokenizer: Any) -> list[str]:
    if tokenizer is None:
        return [str(k) for k in ids]
    return [str(word) for word in tokenizer.convert_ids_to_tokens(ids)]
