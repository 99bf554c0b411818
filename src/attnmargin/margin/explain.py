"""Rows and proofs in words."""

from dataclasses import fields

import torch
from torch import Tensor

from attnmargin.base.places import sequence_words
from attnmargin.margin.problem import EXAMPLE, LAST_TOKEN, MarginProblem, RowNames

_MOST_ROWS = 12


def _subject(sequence: int, position: int) -> str:
    if position == LAST_TOKEN:
        return f"the graph of last token {sequence}"
    if position == EXAMPLE:
        return f"example {sequence}"
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
    if not bool(problem.equality[row]):
        thing = "class" if position == EXAMPLE else "token"
        return f"{subject} wants {thing} {chosen} over {thing} {other}"
    level = "level" if bound == 0 else f"{bound:.3g} apart"
    return f"{subject} wants tokens {chosen} and {other} {level}"


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
    return f"no W satisfies these {len(rows)} rows together: {listed} reads 0 ≥ {gain:.3g}"


def _explain_one(problem: MarginProblem, row: int) -> str:
    _, position, chosen, other = _row_names(problem, row)
    nothing = "the tokens are equal" if other >= 0 else "the token is zero"
    if chosen < 0:
        nothing = "the row is zero"
    elif not bool(problem.right[row].any()):
        nothing = "its features are zero" if position == EXAMPLE else "its query is zero"
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
    example = _row_names(problem, first)[1] == EXAMPLE
    if torch.equal(one, two):
        return f", with the same {'features' if example else 'query'}"
    if _cosine(one, two) > 0:
        return f", with {'parallel features' if example else 'a parallel query'}"
    return f", with {'opposite features' if example else 'an opposite query'}"


def _cosine(x: Tensor, y: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(x.double(), y.double(), dim=0))
