"""A wanted selection: which head realises it, by what margin, and is it realisable at all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

import torch

from attnmargin.base.checks import check_whole
from attnmargin.base.compiled import one_thread
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.margin.certificate import Status
from attnmargin.margin.problem import MarginProblem
from attnmargin.models.contradiction import Contradiction, contradiction_of
from attnmargin.models.fit import Choices, choice_problem, square
from attnmargin.models.hands import ROTARY
from attnmargin.models.head import Head
from attnmargin.models.span import projected
from attnmargin.solvers.entry import solve

# Pairs in the attention SVM of a layer.
_MOST_PAIRS = 256
PLACES = {"previous": -1, "same": 0, "next": 1}


@final
@dataclass(frozen=True)
class LayerAnswer:
    """Whether some W realises the wanted selection at one layer."""

    layer: int
    status: str  # of the attention SVM, or why there is none
    margin: float  # the best one; NaN if there is none
    gap: float  # certified; NaN if there is none
    pairs: int  # in the attention SVM
    contradiction: Contradiction | None  # demands that no W satisfies together


@final
@dataclass(frozen=True)
class HeadAnswer:
    """How far one head realises the wanted selection."""

    layer: int
    index: int
    pairs: float  # share of the pairs in which the wanted token has the largest logit
    rows: float  # share of the rows (pair, rival) with a positive margin
    attention: float  # mean share of attention that wanted tokens get
    margin: float  # least row, over the length of the projected W; NaN with rotary positions


@final
@dataclass(frozen=True, eq=False, repr=False)
class Wanted(Summarised):
    """Heads by how far they realise a selection, the best one first; layers in their order."""

    heads: list[HeadAnswer]
    layers: list[LayerAnswer]
    pairs: int

    def summary(self) -> dict[str, str]:
        """Return the best head and the layers where the selection is realisable, by name."""
        best = self.heads[0]
        good = [str(own.layer) for own in self.layers if own.status == Status.OPTIMAL]
        return {
            "pairs": f"{self.pairs:,}",
            "best head": f"layer {best.layer}, head {best.index}: {best.pairs:.1%} of the pairs",
            "realisable at layers": ", ".join(good) or "none",
        }


def place_pairs(heads: Sequence[Head], place: str) -> list[tuple[int, int, int]]:
    """List pairs that want the "previous", the "same" or the "next" token of every query.

    Only pairs that every head sees, with a rival.
    """
    if place not in PLACES:
        raise InputError("place", repr(place), f"one of {', '.join(PLACES)}")
    head, step = next(iter(heads)), PLACES[place]
    found = []
    for i in range(head.n):
        seen = head.visible(i)
        for t in range(len(head.words[i])):
            s = t + step
            if 0 <= s < len(head.words[i]) and bool(seen[t, s]) and int(seen[t].sum()) > 1:
                found.append((i, t, s))
    return found


@one_thread
def wanted_selection(
    heads: Sequence[Head], pairs: Sequence[Sequence[int]], most: int = _MOST_PAIRS
) -> Wanted:
    """Ask which head attends as wanted, and whether any W could at its layer.

    Args:
        heads: on the same texts.
        pairs: ``(text, query, token)``: this query should select this token. Positions count from
            0 and include special tokens.
        most: pairs in the attention SVM of a layer, spread evenly over all; heads are judged by
            all pairs.

    Returns:
        Heads, the best first; and for every layer the best margin of any W with its certificate,
        or the tokens that contradict each other.

    Example:
        >>> import attnmargin as am
        >>> head = am.models.Head([[9.0]], [[1.0]], [[1.0], [2.0], [0.0]])
        >>> own = am.models.wanted_selection([head], [(0, 0, 1), (0, 1, 1)])
        >>> own.heads[0].pairs, own.layers[0].status, round(own.layers[0].margin, 3)
        (1.0, 'optimal', 1.0)
    """
    listed = list(heads)
    check_whole(most=most)
    if not listed:
        raise InputError("heads", "none", "at least one head")
    choices = check_pairs(listed[0], pairs)
    step = max(-(-len(choices) // most), 1)
    few = Choices(*(x[::step] for x in (choices.text, choices.position, choices.token)))
    answers, layers = [], []
    for layer, group in groupby(sorted(listed, key=lambda own: own.layer), lambda own: own.layer):
        own = list(group)
        problem = None if own[0].rotary is not None else choice_problem(own[0], few)
        answers += [_of_head(head, choices, problem) for head in own]
        layers.append(_of_layer(layer, problem, few))
    order = sorted(answers, key=lambda own: (-own.pairs, -own.attention))
    return Wanted(order, layers, len(choices))


def check_pairs(head: Head, pairs: Sequence[Sequence[int]]) -> Choices:
    """Check pairs against the texts; return them as tensors."""
    rows = [tuple(pair) for pair in pairs]
    if not rows:
        raise InputError("pairs", "no pair", "at least one")
    for k, row in enumerate(rows):
        if len(row) != 3 or any(isinstance(x, bool) or not isinstance(x, int) for x in row):
            raise InputError("pairs", f"{row!r:.80} at place {k}", "(text, query, token)")
        text, query, token = row
        if not 0 <= text < head.n:
            raise InputError("pairs", f"text {text} in pair {k}", f"texts from 0 to {head.n - 1}")
        length = len(head.words[text])
        for what, place in (("query", query), ("token", token)):
            if not 0 <= place < length:
                needs = f"positions from 0 to {length - 1} in text {text}"
                raise InputError("pairs", f"{what} {place} in pair {k}", needs)
        seen = head.visible(text)[query]
        if not bool(seen[token]):
            got = f"token {token} in pair {k}, which query {query} does not see"
            raise InputError("pairs", got, "tokens that their query sees")
        if int(seen.sum()) < 2:
            got = f"query {query} in pair {k}, which sees one token"
            raise InputError("pairs", got, "queries that see at least two")
    return Choices(*torch.tensor(rows, device=head.hidden.device).unbind(-1))


def _of_head(head: Head, choices: Choices, problem: MarginProblem | None) -> HeadAnswer:
    """Judge one head by all pairs; its margin is that over the pairs of the attention SVM."""
    best = rows = total = 0
    attention = 0.0
    for i in choices.text.unique():
        own = choices.text == i
        query, token = choices.position[own], choices.token[own]
        logits = head.logits(int(i))[query]
        gaps = logits.gather(-1, token[:, None]) - logits
        rivals = torch.isfinite(gaps).scatter(-1, token[:, None], False)
        holds = (gaps > 0) & rivals
        rows, total = rows + int(holds.sum()), total + int(rivals.sum())
        best += int((holds | ~rivals).all(-1).sum())
        attention += float(torch.softmax(logits, -1).gather(-1, token[:, None]).sum())
    margin = math.nan if problem is None else _margin(head, problem)
    count = len(choices)
    return HeadAnswer(head.layer, head.index, best / count, rows / total, attention / count, margin)


def _margin(head: Head, problem: MarginProblem) -> float:
    W = square(head)
    length = float(torch.linalg.matrix_norm(projected(W, problem)))
    least = float(problem.apply(W)[problem.mask].min())
    return least / length if length > 0 else 0.0


def _of_layer(layer: int, problem: MarginProblem | None, few: Choices) -> LayerAnswer:
    """Solve the attention SVM of a layer, or name the rows that contradict each other."""
    if problem is None:
        return LayerAnswer(layer, ROTARY, math.nan, math.nan, 0, None)
    solution = solve(problem)
    status, found = str(solution.status), contradiction_of(solution, few)
    if found is not None:
        return LayerAnswer(layer, status, math.nan, math.nan, len(few), found)
    gap = float(solution.certificate.gap)
    return LayerAnswer(layer, status, float(solution.margin), gap, len(few), None)
