"""Readers for the files that commands take: problems, selections, words, prompts."""

import json
from pathlib import Path
from typing import Any

from attnmargin.attention.score import optimal_tokens, refuse_ties
from attnmargin.base.arrays import as_tensor
from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, read_whole
from attnmargin.base.npz import read_npy, read_npz
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.margin.problem import MarginProblem
from attnmargin.prediction.words import Words, name_tokens


def read_problem(file: Path, select: str) -> MarginProblem:
    """Read the problem in a file: saved rows, or data with a selection."""
    arrays = read_npz(file)
    if "left" in arrays:
        if select != "opt":
            raise InputError("--select", select, "a data file; this one holds a finished problem")
        return MarginProblem.load(file)
    data = AttentionData.load(file)
    return token_problem(data.X, data.z, _selection(data, select), data.mask)


def _selection(data: AttentionData, select: str) -> Any:
    if select != "opt":
        return read_selection(Path(select))
    refuse_ties(data, "--select", "unique optimal tokens, or a selection given by --select FILE")
    return optimal_tokens(data)


def read_selection(path: Path) -> Any:
    """Read a selection from ``.npy``, ``.npz`` (array ``selection``) or ``.json``."""
    if path.suffix == ".json":
        text = read_whole(path, "--select", "opt or a file")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("--select", f"{path} ({error})", "a plain array of tokens") from error
    if path.suffix == ".npy":
        return read_npy(path, "--select")
    check_file(path, "--select", "opt or a file")
    return read_npz(path, needs=("selection",))["selection"]


def read_start(start: str, data: AttentionData, parameter: str) -> Any:
    """Read where a run starts: "zero", "random", or weights from ``.npy`` or ``.npz``.

    Numbers get the dtype of the data.
    """
    if start in ("zero", "random"):
        return None if start == "zero" else start
    path, names = Path(start), ("K", "Q") if parameter == "KQ" else ("W",)
    try:
        if path.suffix == ".npz":
            found = [read_npz(path, needs=names)[name] for name in names]
        else:
            found = [read_npy(path, "--start")]
        parts = tuple(as_tensor("--start", x).to(data.X) for x in found)
    except InputError as error:
        raise InputError("--start", error.got, error.needs) from error
    return parts if len(parts) == 2 else parts[0]


def read_data(file: Path, named: bool) -> tuple[AttentionData, Words | None]:
    """Read the data of a file, and the names of its tokens if it has any or ``named`` is set."""
    data = AttentionData.load(file)
    names = read_words(file, data)
    several = bool(data.batch_shape) or data.z.ndim == data.X.ndim
    if not named and (several or names is None):
        return data, None
    return data, name_tokens(data, names)


def read_words(file: Path, data: AttentionData) -> list[list[str]] | None:
    """Read the token names of a data file, strings ``words`` of shape ``(n, T)``, if present."""
    words = read_npz(file).get("words")
    if words is None:
        return None
    if words.shape != (data.n, data.T):
        needs = f"one name per token, {(data.n, data.T)}"
        raise InputError("words", f"shape {words.shape}", needs)
    return [[str(word) for word in row] for row in words]


def read_prompt(words: str) -> list[str]:
    """Split a prompt at blanks, or parse it as a JSON list, whose tokens may contain blanks."""
    if words.lstrip().startswith("["):
        try:
            listed = json.loads(words)
        except ValueError:
            return words.split()
        if isinstance(listed, list):
            return [str(token) for token in listed]
    return words.split()
