"""Rows and proofs in words."""

from dataclasses import dataclass, fields
from typing import final

import torch
from torch import Tensor

from attnmargin.base.places import sequence_words
from attnmargin.margin.problem import CONTEXT, EXAMPLE, LAST_TOKEN, MarginProblem, RowNames

_MOST_ROWS = 12


@final
@dataclass(frozen=True)
class _Words:
    """What the parts of a row are called."""

    things: tuple[str, str]  # what wins and loses: one, and several
    query: str  # the right factor,
    parallel: str  # with its article: "a parallel query"
    opposite: str


_TOKENS = _Words(("token", "tokens"), "query", "a parallel query", "an opposite query")
_WORDS = {
    EXAMPLE: _Words(("class", "classes"), "features", "parallel features", "opposite features"),
    CONTEXT: _Words(
        ("word", "words"), "embedding", "a parallel embedding", "an opposite embedding"
    ),
}


def _subject(sequence: int, position: int) -> str:
    if position == LAST_TOKEN:
        return f"the graph of last token {sequence}"
    if position == EXAMPLE:
        return f"example {sequence}"
    if position == CONTEXT:
        return f"context {sequence}"
    return sequence_words(sequence, position if position >= 0 else None)


def row_words(problem: MarginProblem, row: int) -> str:
    """Say what one row of a single problem demands: "sequence 3 wants token 1 over token 0"."""
    sequence, position, chosen, other = _row_names(problem, row)
    subject = _subject(sequence, position)
    bound = float(problem.bound[row])
    relation = f"= {bound:g}" if bool(problem.equality[row]) else f"≥ {bound:g}"
    if chosen < 0:
        return f"row {sequence} wants {relation}"
    if other < 0:
        return f"{subject} wants its label from token {chosen}"
    thing, things = _WORDS.get(position, _TOKENS).things
    if not bool(problem.equality[row]):
        return f"{subject} wants {thing} {chosen} over {thing} {other}"
    level = "level" if bound == 0 else f"{bound:.3g} apart"
    return f"{subject} wants {things} {chosen} and {other} {level}"


def _row_names(problem: MarginProblem, row: int) -> list[int]:
    return [int(getattr(problem.names, field.name)[row]) for field in fields(RowNames)]


def explain_infeasible(problem: MarginProblem, dual: Tensor) -> str:
    """Write a Farkas proof of a single problem as a sentence; ``dual`` has shape ``(M,)``."""
    rows = [int(row) for row in dual.nonzero().flatten()]
    if len(rows) == 1:
        return _explain_one(problem, rows[0])
    if len(rows) == 2 and not bool(problem.equality[rows].any()):
        return _explain_two(problem, rows[0], rows[1])
    weighted = [
        f"{float(dual[row]):.3g} × ({row_words(problem, row)})" for row in rows[:_MOST_ROWS]
    ]
    if len(rows) > _MOST_ROWS:
        weighted.append(f"… {len(rows) - _MOST_ROWS} more")
    gain = float((dual * problem.bound)[rows].sum())
    listed = " + ".join(weighted)
    together = f"no W satisfies these {len(rows)} rows together: {listed} reads 0 ≥ {gain:.3g}"
    return f"{_contradiction(problem, rows)}{together}"


def _contradiction(problem: MarginProblem, rows: list[int]) -> str:
    """Name the contexts that contradict each other; nothing for other kinds of rows."""
    names = [_row_names(problem, row) for row in rows]
    contexts = sorted({sequence for sequence, position, *_ in names if position == CONTEXT})
    if len(contexts) < 2:
        return ""
    first, last = ", ".join(map(str, contexts[:-1])), contexts[-1]
    return f"contexts {first} and {last} contradict each other: "


def _explain_one(problem: MarginProblem, row: int) -> str:
    _, position, chosen, other = _row_names(problem, row)
    nothing = "the tokens are equal" if other >= 0 else "the token is zero"
    if chosen < 0:
        nothing = "the row is zero"
    elif not bool(problem.right[row].any()):
        query = _WORDS.get(position, _TOKENS).query
        nothing = f"its {query} {'are' if query.endswith('s') else 'is'} zero"
    return f"{row_words(problem, row)}, but {nothing}"


def _explain_two(problem: MarginProblem, first: int, second: int) -> str:
    """Explain two inequalities: they contradict each other only if their rows are opposite."""
    _, _, chosen, other = _row_names(problem, first)
    sequence, position, *pair = _row_names(problem, second)
    same = _cosine(problem.left[first], problem.left[second]) > 0
    if not same and chosen >= 0 and pair == [other, chosen] and other >= 0:
        tail = f"{_subject(sequence, position)} the reverse"
    else:
        relation = "the same" if same else "the opposite"
        what = "difference" if other >= 0 else "direction"
        tail = f"{row_words(problem, second)}, {relation} {what}"
    return f"{row_words(problem, first)}, {tail}{_query_words(problem, first, second)}"


def _query_words(problem: MarginProblem, first: int, second: int) -> str:
    """Say how the two queries compare; nothing for a problem over a vector."""
    one, two = problem.right[first], problem.right[second]
    if problem.shape[1] == 1:
        return ""
    words = _WORDS.get(_row_names(problem, first)[1], _TOKENS)
    if torch.equal(one, two):
        return f", with the same {words.query}"
    return f", with {words.parallel if _cosine(one, two) > 0 else words.opposite}"


def _cosine(x: Tensor, y: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(x.double(), y.double(), dim=0))
