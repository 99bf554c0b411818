"""How near a head is to the max-margin solution of what it selects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import Frobenius, Norm, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.slack import with_slack
from attnmargin.margin.solution import Solution
from attnmargin.models.head import Head
from attnmargin.models.hinge import soft_margin
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
    """A head against the attention SVM of some choices, in one norm; see :func:`fit_choices`."""

    problem: MarginProblem  # without slack
    solution: Solution  # with slack, its W has further rows, which hold the slack
    rows: Tensor  # left_mᵀ W right_m of the head, (M,), as the problem has them
    length: float  # norm of W, projected on span(token differences) × span(queries)
    cosine: float  # of the projected W with the solution
    price: float = math.inf  # of slack, in units of the rows

    @property
    def feasible(self) -> bool:
        """Whether some W realises the choices, with slack if that has a price."""
        return bool(self.solution.feasible)

    @property
    def margin(self) -> float:
        """Least row of the head, for a projected W of length one; 0 if nothing is left of W.

        With slack, its :func:`soft_margin`.
        """
        if self.price < math.inf:
            return soft_margin(self.leads(self.rows)[self._there], self.length, self.price)
        least = float(self.rows[self.problem.mask].min())
        return least / self.length if self.length > 0.0 else 0.0

    @property
    def best(self) -> float:
        """The best margin of any W of length one; NaN if there is none. With slack, the best
        soft margin of any W."""
        return float(self.solution.margin)

    @property
    def efficiency(self) -> float:
        """Margin of the head over the best one: 1 is the max-margin solution itself.

        With slack, how much of what W can gain over W = 0 the head gains, at the scale that suits
        it best. With ``F(W) = ½ ‖W‖² + C Σ_q ξ_q(W)²`` it is

            √( (F(0) − min_{s ≥ 0} F(sW)) / (F(0) − min F) )

        from 0 to 1; it is 1 for the soft-margin solution and its multiples alone. For ``C → 0`` it
        is the mean lead of W over the best mean lead, where a margin is the least lead.
        """
        if self.price == math.inf:
            return self.margin / self.best
        nothing = self.price * int(self._there.sum())
        own, least = (0.5 / margin**2 for margin in (self.margin, self.best))
        return math.sqrt(max(nothing - own, 0.0) / (nothing - least)) if nothing > least else 0.0

    @property
    def held(self) -> float:
        """Share of the rows that the head satisfies with a positive margin."""
        return float((self.rows[self.problem.mask] > 0).double().mean())

    @property
    def slack(self) -> Tensor:
        """Slack of each query in the solution, ``(q,)``; NaN if there is none."""
        W = self.solution.W[: self.problem.shape[0]]
        lead = self.leads(self.problem.apply(W))
        return (1.0 - lead).clamp_min(0.0)

    @property
    def _there(self) -> Tensor:
        """Which queries have rows in the problem with slack: those that are not zero."""
        return self.solution.problem.mask.unflatten(0, (len(self.slack), -1)).any(-1)

    def leads(self, rows: Tensor) -> Tensor:
        """Find the least row of each query, ``(q,)``; infinite for a query without rows."""
        own = rows.masked_fill(~self.problem.mask, math.inf)
        return own.unflatten(0, (self.problem.query.shape[-2], -1)).amin(-1)


def fit_choices(
    heads: Sequence[Head],
    choices: Sequence[Choices],
    norm: str | float | Norm = "fro",
    price: float = math.inf,
) -> list[Fit]:
    """Compare heads of one layer with the attention SVMs of their choices, one each.

    The solution lives in span(token differences) × span(queries) (paper A, Lemma 1). What a head
    has outside moves no row, so its W is projected first.

    Args:
        heads, choices: as many of each.
        norm: of the attention SVM.
        price: of slack, relative to the rows, see :class:`Settings`; finite in the Frobenius norm
            only.
    """
    norm = as_norm(norm)
    if price < math.inf and not isinstance(norm, Frobenius):
        raise InputError(
            "norm", f"{norm.name!r} beside a finite price", "'fro', or an infinite price"
        )
    found: list[Fit] = []
    spans: dict[int, TokenSpan] = {}
    for part in _parts(heads, choices, price < math.inf):
        problems = [choice_problem(heads[k], choices[k]) for k in part]
        prices = [priced(problem, price) for problem in problems]
        solutions = _solutions([softened(*own) for own in zip(problems, prices, strict=True)], norm)
        for b, k in enumerate(part):
            key = id(heads[k].hidden)
            if key not in spans:
                spans[key] = _span(heads[k])
            found.append(_fit(heads[k], problems[b], solutions[b], spans[key], prices[b]))
    return found


def priced(problem: MarginProblem, price: float) -> float:
    """Convert a price for rows of mean square 1 to the rows of a problem."""
    if price == math.inf:
        return price
    square = float(problem.lengths()[problem.mask].square().mean())
    return price / square if square > 0.0 else price


def softened(problem: MarginProblem, price: float) -> MarginProblem:
    """Give every query a slack of some price; none if it is infinite."""
    return problem if price == math.inf else with_slack(problem, Frobenius(), price)


def _span(head: Head) -> TokenSpan:
    """Find the span of all token differences of the texts of a head."""
    extra = int(head.b_Q is not None)
    return TokenSpan(torch.nn.functional.pad(head.hidden, (0, extra)), head.inside)


def _parts(heads: Sequence[Head], choices: Sequence[Choices], soft: bool) -> list[range]:
    """Cut the work into runs of problems of one size, which are solved together."""
    sizes = [
        (len(own) * head.T * (head.d + soft * len(own)), head.T, head.d, len(own))
        for head, own in zip(heads, choices, strict=True)
    ]
    edges = [0]
    for k in range(1, len(sizes)):
        if sizes[k] != sizes[edges[-1]] or (k - edges[-1] + 1) * sizes[k][0] > _ENTRIES:
            edges.append(k)
    return [range(*pair) for pair in pairwise([*edges, len(sizes)])]


def _solutions(problems: list[MarginProblem], norm: Norm) -> list[Solution]:
    """Solve problems of one size together; a single one is not copied."""
    if len(problems) == 1:
        return [solve(problems[0], norm)]
    together = solve(_stacked(problems), norm)
    return [replace(together[b], problem=own) for b, own in enumerate(problems)]


def _stacked(problems: list[MarginProblem]) -> MarginProblem:
    """Join problems of one size to a batch; their rows have no common names."""
    names = ("left", "query", "bound", "equality", "mask")
    rows = {name: torch.stack([getattr(p, name) for p in problems]) for name in names}
    return MarginProblem(**rows, names=problems[0].names)


def _fit(
    head: Head, problem: MarginProblem, solution: Solution, tokens: TokenSpan, price: float
) -> Fit:
    W = square(head)
    inner = projected(W, problem, tokens)
    best = solution.W[: len(W)]
    cosine = torch.nn.functional.cosine_similarity(inner.flatten(), best.flatten(), dim=0)
    length = float(solution.norm.value(inner))
    return Fit(problem, solution, problem.apply(W), length, float(cosine), price)


def square(head: Head) -> Tensor:
    """Return W in float64 for tokens that have a 0 where queries have a 1."""
    W = head.W.double()
    return torch.nn.functional.pad(W, (0, 0, 0, W.shape[1] - W.shape[0]))
