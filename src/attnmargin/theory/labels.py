"""Paper B, Section 3.2: the label margin under attention, Assumption B and Theorem 5.

With the selected tokens the ℓp-SVM of the labels has the margin ``Γ = min_λ ‖Σ λ_i y_i x_iα‖_q``,
λ on the simplex, attained at λ*. With attention ``s_i`` its margin is at most
``φ(s) = ‖Σ λ*_i y_i X_iᵀ s_i‖_q``, which is convex: if φ is at most Γ − ν at all vertices but the
selected one, then ``Γ − Γ' ≥ ν (1 − Π s_iα) ≥ ν (1 − s_iα)`` for every W, which is Assumption B.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.attention.selection import check_selection
from attnmargin.base.arrays import Array, tiny
from attnmargin.base.checks import check_kind
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.norms import check_power, scaled_norm
from attnmargin.margin.problem import margin_problem
from attnmargin.margin.solution import Solution
from attnmargin.selections.local_optimality import label_margin
from attnmargin.solvers.entry import solve
from attnmargin.theory.check import Check, Outcome, outcome

# Exchanges of one token, those with the largest label margins, that are tried.
_MOST_SWAPS = 32
# Vertices at which φ is evaluated, at most.
_VERTICES = 1 << 18
# Selections whose label margins are all compared; label margins that a climb may compare.
_SELECTIONS, _COMPARED = 256, 2000
# Singular values of the selected tokens below this share of the largest are rounding.
_DEPENDENT = 1e-9
# Share of Γ that ν must have: the multipliers are known to fewer digits than Γ.
_CLEAR = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Labels:
    """What is known about Assumption B for one selection per instance, ``(*B,)`` each."""

    margin: Tensor  # Γ
    other: Tensor  # largest margin after exchanging one token
    nu: Tensor  # Γ − max φ; NaN where there are too many vertices
    holds: Tensor  # bool
    fails: Tensor  # bool
    feasible: Tensor  # bool: some W selects these tokens from others
    settled: Tensor  # bool: it is known whether one does


def label_facts(data: AttentionData, selection: Tensor, p: float) -> Labels:
    """Decide Assumption B for selections int ``(*B, n)``."""
    members = list(np.ndindex(*data.batch_shape))
    rows = [_of_one(data[x] if x else data, selection[x], p) for x in members]
    if not rows:
        return _of_none(data.X.new_zeros(data.batch_shape))
    parts = [torch.stack([getattr(row, f.name) for row in rows]) for f in fields(Labels)]
    return Labels(*(part.reshape(data.batch_shape) for part in parts))


def _of_none(empty: Tensor) -> Labels:
    """What is known of an empty batch."""
    return Labels(empty, empty, empty, *[empty.bool()] * 4)


def _of_one(data: AttentionData, selection: Tensor, p: float) -> Labels:
    assert data.y is not None
    solution = solve(label_problem(data.X, data.y, selection, _mask(data)), p)
    margin = solution.margin.nan_to_num(nan=0.0)
    other, nu = _best_swap(data, selection, p), _shrinkage(data, selection, solution, p)
    clear = max(_CLEAR, 100.0 * torch.finfo(data.X.dtype).eps) * margin
    held = solution.optimal & (nu > clear)
    spread = solve(token_problem(data.X, data.z, selection, data.mask), p)
    # The margins of two solutions are compared: what rounding hides refutes nothing.
    larger = other >= margin + clear
    refuted = solution.infeasible | (
        solution.optimal & (larger | _has_free(data, solution, spread))
    )
    settled = spread.feasible | spread.infeasible
    selects = spread.feasible & spread.problem.mask.any(-1)
    return Labels(margin, other, nu, held, refuted & ~held, selects, settled)


def _mask(data: AttentionData) -> Tensor | None:
    """Return which tokens a sequence of one query sees, ``(n, T)``."""
    mask = data.mask
    return mask.squeeze(-2) if mask is not None and mask.ndim == data.X.ndim else mask


def _seen(data: AttentionData) -> Tensor:
    mask = _mask(data)
    full = torch.ones(data.X.shape[:-1], dtype=torch.bool, device=data.X.device)
    return full if mask is None else mask.expand_as(full)


def _best_swap(data: AttentionData, selection: Tensor, p: float) -> Tensor:
    """Find the largest label margin after exchanging the token of one sequence."""
    swapped = _swaps(data, selection)
    if len(swapped) == 0:
        return data.X.new_zeros(())
    margin = label_margin(data, swapped, p)
    first = margin.topk(min(_MOST_SWAPS, len(margin))).indices
    # Some W must give them nearly all attention.
    possible = solve(token_problem(data.X, data.z, swapped[first], data.mask)).feasible
    return margin[first].where(possible, 0.0).amax()


def _swaps(data: AttentionData, selection: Tensor) -> Tensor:
    """List the selections with one other token, ``(·, n)``."""
    sequence, token = _seen(data).nonzero().T
    sequence, token = (x[token != selection[sequence]] for x in (sequence, token))
    swapped = selection.repeat(len(token), 1)
    swapped[torch.arange(len(token)), sequence] = token
    return swapped


def _shrinkage(data: AttentionData, selection: Tensor, solution: Solution, p: float) -> Tensor:
    """Compute ν = Γ − max φ over all vertices but the selected one.

    NaN where these are too many; infinite where there is no other.
    """
    assert data.y is not None
    weight = _shortest(solution) * data.y
    seen, sums = _seen(data), data.X.new_zeros(1, data.d)
    if bool(((weight == 0) & (seen.sum(-1) > 1)).any()):
        return torch.zeros_like(solution.value)  # φ does not notice what this sequence selects
    if math.prod(int(x) for x in seen.sum(-1).clamp_min(1)) > _VERTICES:
        return torch.full_like(solution.value, torch.nan)
    for i, own in enumerate(selection.tolist()):
        others = [t for t in seen[i].nonzero().flatten().tolist() if t != own]
        tokens = weight[i] * data.X[i, [own, *others]]  # the selected vertex stays the first one
        sums = (sums[:, None] + tokens).flatten(0, 1)
    phi = scaled_norm(sums, p / (p - 1.0))
    return solution.margin - phi[1:].amax() if len(phi) > 1 else phi.new_tensor(torch.inf)


def _shortest(solution: Solution) -> Tensor:
    """Find the shortest λ* on the simplex, ``(n,)``.

    All have the same ``Σ λ_i y_i x_iα``, and the shortest leaves no sequence out without need: it
    is ``λ + N (w − Nᵀλ)`` with ``N`` a basis of what the rows do not tell apart, and w the
    shortest vector that keeps it nonnegative.
    """
    exists = solution.problem.mask
    left, dual = solution.problem.left[exists], solution.dual[exists].clamp_min(0.0)
    dual = dual / dual.sum().clamp_min(tiny(dual))
    whole = torch.zeros_like(solution.dual)
    if len(dual) == 0:
        return whole
    U, S, _ = torch.linalg.svd(torch.cat((left, torch.ones_like(left[:, :1])), -1))
    free = U[:, int((S / S[0] > _DEPENDENT).sum()) :]
    if free.shape[-1]:
        within = free.mT @ dual
        w = solve(margin_problem(free, free.new_ones(1, 1), free @ within - dual)).W[:, 0]
        shortest = (dual + free @ (w - within)).clamp_min(0.0)
        dual = (shortest / shortest.sum()).where(torch.isfinite(w).all(), dual)
    whole[exists] = dual
    return whole


def _has_free(data: AttentionData, solution: Solution, spread: Solution) -> Tensor:
    """Decide if attention can leave a sequence that is no support vector at no cost, bool.

    If its margins under some W are one, and those of all support vectors two, then along R · W the
    label margin loses ``O(e^{−2R})``, and the selected token of the sequence ``e^{−R}``: no ν > 0
    satisfies both.
    """
    problem = spread.problem
    slack = ~solution.support & ~solution.doubtful & solution.problem.mask
    owner = problem.names.sequence.expand(problem.M)
    rows = (slack[owner] & problem.mask).nonzero().flatten()
    rows = rows[:: len(rows) // _MOST_SWAPS + 1]
    if len(rows) == 0:
        return torch.zeros_like(solution.optimal)
    C = len(rows)
    bound = torch.where(slack[owner], 1.0, 2.0).to(problem.bound).repeat(C, 1)
    equality = rows.unsqueeze(-1) == torch.arange(problem.M, device=rows.device)
    tried = replace(
        problem,
        left=problem.left.expand(C, -1, -1),
        query=problem.query.expand(C, -1, -1),
        mask=problem.mask.expand(C, -1),
        bound=bound,
        equality=equality,
    )
    return solve(tried).feasible.any()


def widest_selection(data: AttentionData, p: float) -> tuple[Tensor, Tensor]:
    """Find the selection of largest label margin, int ``(*B, n)``, and whether all were compared.

    Where all are, it is the best of those that some W makes, and Assumption B fails for all others.
    Where there are many, it climbs from the best tokens of the head, or from the first ones, by
    exchanging one token after the other.
    """
    members = list(np.ndindex(*data.batch_shape))
    found = [_widest(data[x] if x else data, p) for x in members]
    selections = torch.zeros(len(found), data.n, dtype=torch.int64, device=data.X.device)
    for row, (selection, _) in zip(selections, found, strict=True):
        row.copy_(selection)
    known = torch.tensor([x for _, x in found], dtype=torch.bool)
    return selections.reshape(*data.batch_shape, data.n), known.reshape(data.batch_shape)


def _widest(data: AttentionData, p: float) -> tuple[Tensor, bool]:
    seen = _seen(data)
    visible = [x.nonzero().flatten() if bool(x.any()) else torch.zeros(1).long() for x in seen]
    if math.prod(len(x) for x in visible) <= _SELECTIONS:
        grid = torch.cartesian_prod(*visible).reshape(-1, data.n)
        possible = solve(token_problem(data.X, data.z, grid, data.mask)).feasible
        return grid[int(label_margin(data, grid, p).where(possible, -1.0).argmax())], True
    own = optimal_tokens(data) if data.v is not None else torch.stack([x[0] for x in visible])
    width = label_margin(data, own, p)
    for _ in range(_COMPARED // (data.n * data.T) + 1):
        swapped = _swaps(data, own)
        margin = label_margin(data, swapped, p)
        if not bool(margin.amax() > width):
            break
        own, width = swapped[int(margin.argmax())], margin.amax()
    return own, False


_LABELS = "Attention to any other token lowers the margin by which the labels are told apart."
_JOINT = "If head and weights are chosen together, both turn to their margins' directions."


def assumption_b(found: Labels) -> Check:
    """Build the check of Assumption B."""
    return Check(
        "B",
        "Assumption B",
        _LABELS,
        outcome(found.holds, found.holds | found.fails),
        {
            "label margin": found.margin,
            "largest after exchanging one token": found.other,
            "ν (label margin lost per attention lost)": found.nu.clamp_min(0.0),
        },
        "it fails where exchanging one token does not lower the margin, or a sequence that is no "
        "support vector can lose attention first",
    )


def theorem_5(found: Labels, known: Tensor | None = None) -> Check:
    """Build the check of Theorem 5; it is refuted only where ``known``, bool ``(*B,)``."""
    held = found.holds & found.feasible
    refuted = found.fails | (found.settled & ~found.feasible)
    refuted = refuted if known is None else refuted & known
    numbers = {"label margin": found.margin, "ν (label margin lost per attention lost)":
               found.nu.clamp_min(0.0)}  # fmt: skip
    note = "with the logistic loss, for tokens that some weights select and Assumption B"
    return Check("B", "Theorem 5", _JOINT, outcome(held, held | refuted), numbers, note)


def silent(note: str) -> list[Check]:
    """Return both checks where they are not decidable."""
    names = (("Assumption B", _LABELS), ("Theorem 5", _JOINT))
    return [Check("B", name, meaning, Outcome.UNDECIDABLE, {}, note) for name, meaning in names]


def check_joint(data: AttentionData, p: float = 2.0, selection: Array | None = None) -> list[Check]:
    """Check Assumption B and Theorem 5 of paper B: head and weights trained together.

    Args:
        data: tokens, queries and labels, with any batch; a head is not needed.
        p: of the ℓp-SVM of the labels and of the attention.
        selection: int ``(*B, n)``; by default the tokens with the largest label margin, the only
            ones that can satisfy the assumption.

    Returns:
        Two :class:`Check`: "holds" is proved by ν, "fails" by another W.

    Example:
        >>> import attnmargin as am
        >>> X = [[[5.0, 0.0], [0.0, 1.0]], [[-5.0, 0.0], [0.0, -1.0]]]  # paper B, Example 1
        >>> data = am.AttentionData(X, [[5.0, 0.0], [-5.0, 0.0]], [1, -1])
        >>> print(am.theory.check_joint(data, p=3.0)[1])
        B: Theorem 5: holds (label margin 5, ν (label margin lost per attention lost) 2.35307)
    """
    check_kind("data", data, AttentionData)
    p = check_power(p)
    if data.y is None:
        raise InputError("data", "no labels", "labels y, which the label margin is about")
    if data.z.ndim == data.X.ndim:
        return silent("asked for one query per sequence")
    known = None
    if selection is None:
        chosen, known = widest_selection(data, p)
    else:
        chosen = check_selection(data, selection, data.batch_shape)
    found = label_facts(data, chosen, p)
    return [assumption_b(found), theorem_5(found, known)]
