"""How near a head is to the max-margin solution of what it selects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import Norm, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.models.head import Head
from attnmargin.models.span import TokenSpan, projected
from attnmargin.solvers.entry import solve

# Problems are solved together up to so many entries of tokens.
_ENTRIES = 1 << 23


@final
@dataclass(frozen=True, eq=False)
class Choices:
    """Queries, each with the token that it is to select; int64 ``(q,)`` each."""

    text: Tensor
    position: Tensor
    token: Tensor

    def __len__(self) -> int:
        return len(self.text)


def check_one_W(head: Head) -> None:
    """Raise InputError for heads whose logits are not those of one W."""
    if head.rotary is not None:
        got = f"layer {head.layer}, head {head.index}, whose positions are rotary"
        needs = "one W for all distances, as an attention SVM is about one W"
        raise InputError("head", got, needs)


def choice_problem(head: Head, choices: Choices) -> MarginProblem:
    """Build the attention SVM of some choices: the chosen tokens beat all that the query sees.

    Every query is a sequence of its own. Tokens get a 0 where queries get a 1, so that W is square;
    its last row stays zero.

    Returns:
        A problem in float64, over matrices ``(d + 1, d + 1)``, or ``(d, d)`` without a bias.
    """
    check_one_W(head)
    X = head.hidden[choices.text].double()
    z = head.hidden[choices.text, choices.position].double()
    seen = {int(i): head.visible(int(i)) for i in choices.text.unique()}
    pairs = zip(choices.text.tolist(), choices.position.tolist(), strict=True)
    mask = torch.stack([seen[i][t] for i, t in pairs])
    if head.b_Q is not None:
        X = torch.nn.functional.pad(X, (0, 1))
        z = torch.nn.functional.pad(z, (0, 1), value=1.0)
    return token_problem(X, z, choices.token, mask)


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """A head against the attention SVM of some choices, in one norm."""

    problem: MarginProblem
    solution: Solution
    rows: Tensor  # left_mᵀ W right_m of the head, (M,), as the problem has them
    length: float  # norm of W, projected on span(token differences) × span(queries)
    cosine: float  # of the projected W with the solution

    @property
    def feasible(self) -> bool:
        """Whether some W realises the choices."""
        return bool(self.solution.feasible)

    @property
    def margin(self) -> float:
        """Least row of the head, for a projected W of length one; 0 if nothing is left of W."""
        least = float(self.rows[self.problem.mask].min())
        return least / self.length if self.length > 0.0 else 0.0

    @property
    def best(self) -> float:
        """The best margin of any W of length one; NaN if there is none."""
        return float(self.solution.margin)

    @property
    def efficiency(self) -> float:
        """Margin of the head over the best one: 1 is the max-margin solution itself."""
        return self.margin / self.best

    @property
    def held(self) -> float:
        """Share of the rows that the head satisfies with a positive margin."""
        return float((self.rows[self.problem.mask] > 0).double().mean())


def fit_choices(
    heads: Sequence[Head], choices: Sequence[Choices], norm: str | float | Norm = "fro"
) -> list[Fit]:
    """Compare heads of one layer with the attention SVMs of their choices, one each.

    The solution lives in span(token differences) × span(queries) (paper A, Lemma 1). What a head
    has outside moves no row, so its W is projected first.
    """
    norm = as_norm(norm)
    found: list[Fit] = []
    spans: dict[int, TokenSpan] = {}
    for part in _parts(heads, choices):
        problems = [choice_problem(heads[k], choices[k]) for k in part]
        solutions = solve(_stacked(problems), norm)
        for b, k in enumerate(part):
            key = id(heads[k].hidden)
            if key not in spans:
                spans[key] = _span(heads[k])
            found.append(_fit(heads[k], problems[b], solutions[b], norm, spans[key]))
    return found


def _span(head: Head) -> TokenSpan:
    """Find the span of all token differences of the texts of a head."""
    extra = int(head.b_Q is not None)
    return TokenSpan(torch.nn.functional.pad(head.hidden, (0, extra)), head.inside)


def _parts(heads: Sequence[Head], choices: Sequence[Choices]) -> list[range]:
    """Cut the work into runs of problems of one size, which are solved together."""
    sizes = [
        (len(own) * head.T * head.d, head.T, head.d, len(own))
        for head, own in zip(heads, choices, strict=True)
    ]
    edges = [0]
    for k in range(1, len(sizes)):
        if sizes[k] != sizes[edges[-1]] or (k - edges[-1] + 1) * sizes[k][0] > _ENTRIES:
            edges.append(k)
    return [range(*pair) for pair in pairwise([*edges, len(sizes)])]


def _stacked(problems: list[MarginProblem]) -> MarginProblem:
    """Join problems of one size to a batch; their rows have no common names."""
    names = ("left", "query", "bound", "equality", "mask")
    rows = {name: torch.stack([getattr(p, name) for p in problems]) for name in names}
    return MarginProblem(**rows, names=problems[0].names)


def _fit(
    head: Head, problem: MarginProblem, solution: Solution, norm: Norm, tokens: TokenSpan
) -> Fit:
    W = square(head)
    inner = projected(W, problem, tokens)
    cosine = torch.nn.functional.cosine_similarity(inner.flatten(), solution.W.flatten(), dim=0)
    own = replace(solution, problem=problem)
    return Fit(problem, own, problem.apply(W), float(norm.value(inner)), float(cosine))


def square(head: Head) -> Tensor:
    """Return W in float64 for tokens that have a 0 where queries have a 1."""
    W = head.W.double()
    return torch.nn.functional.pad(W, (0, 0, 0, W.shape[1] - W.shape[0]))
