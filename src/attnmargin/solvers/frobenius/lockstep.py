"""The dual active-set method for a whole batch in lockstep, in plain torch on any device.

It is the method of :mod:`attnmargin.solvers.frobenius.active_set` for many problems at once. Each
iteration sweeps the Gram matrix of the unit rows by one principal pivot per problem.
After the rows of a set A have been swept in, the tableau holds

    −G_AA⁻¹ on A × A,   G_AA⁻¹ G_AN on A × N,   the Schur complement on N × N,

so that a step needs only the column of a violated row. A finished problem stays put while the
others go on.
"""

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED

# A row closer than this to the span of the active rows, relative to the size of its
# coefficients, counts as dependent on them.
_DEPENDENT = 1e-10
# Violations that count while pivoting and after refinement; dependent rows may violate more.
_COARSE, _FINE, _ROUNDING = 1e-11, 1e-15, 1e-9
# A coefficient below this share of the largest is rounding.
_NOTHING = 1e-12
# Relative growth of ‖W‖² that protecting a row from rounding may cost.
_CHEAP = 1e-13
_ROUNDS = 6
_RUNNING = -1


@final
@dataclass
class _State:
    """The mutable state of B problems with M rows each."""

    tableau: Tensor  # (B, M, M)
    active: Tensor  # bool (B, M)
    usable: Tensor  # bool (B, M)
    dual: Tensor  # (B, M)
    slack: Tensor  # (B, M)
    entering: Tensor  # int (B,), -1 for none
    sign: Tensor  # (B,) of the entering row
    outcome: Tensor  # int (B,)
    iterations: Tensor  # int (B,)


def solve_lockstep(
    problem: MarginProblem,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve a flat float64 batch; return multipliers ``(B, M)``, W, outcome and iterations."""
    B, M = problem.bound.shape
    unit, length, scale = _unit_rows(problem)
    impossible = _impossible(problem)
    gram = _gram(unit)
    state = _State(
        tableau=gram.clone(),
        active=torch.zeros_like(unit.mask),
        usable=unit.mask.clone(),
        dual=torch.zeros_like(unit.bound),
        slack=-unit.bound,
        entering=torch.full((B,), -1, device=gram.device),
        sign=torch.ones_like(scale),
        outcome=torch.full((B,), _RUNNING, device=gram.device),
        iterations=torch.zeros(B, dtype=torch.int64, device=gram.device),
    )
    state.outcome[impossible.any(-1)] = INFEASIBLE
    W = unit.left.new_zeros(B, *problem.shape)
    if B and M:
        for _ in range(_ROUNDS):
            _pivot_until_feasible(unit, state)
            running = (state.outcome == _RUNNING)[:, None, None]
            W = _refine(unit, gram, state).where(running, W)
            if not bool((state.outcome == _RUNNING).any()):
                break
    state.outcome[state.outcome == _RUNNING] = STALLED if M else SOLVED
    dual = _deliver(unit, state) / length
    dual = dual / scale.where(state.outcome == INFEASIBLE, 1.0).unsqueeze(-1)
    if bool(impossible.any()):
        first = impossible & (impossible.cumsum(-1) == 1)
        dual = torch.where(impossible.any(-1, keepdim=True), first / problem.bound, dual)
        dual = dual.nan_to_num(nan=0.0)
    return dual, W * scale[:, None, None], state.outcome, state.iterations


def _deliver(unit: MarginProblem, state: _State) -> Tensor:
    """Rescale the multipliers from min ½‖W‖² to min ‖W‖, and a proof to bᵀλ = 1."""
    dual = state.dual.where(unit.equality, state.dual.clamp_min(0.0))
    gain = (unit.bound * dual).sum(-1, keepdim=True).clamp_min(0.0)
    size = gain.where((state.outcome == INFEASIBLE)[:, None], gain.sqrt())
    return (dual / size).where(size > 0, 0.0)


def _power(x: Tensor) -> Tensor:
    """Return the next power of two above x, so that dividing by it does not round; 1 for 0."""
    return torch.ldexp(torch.ones_like(x), torch.frexp(x).exponent)


def _unit_rows(problem: MarginProblem) -> tuple[MarginProblem, Tensor, Tensor]:
    """Scale rows and bounds to size about one; return them, the lengths and the bounds' size."""
    rows = _power(scaled_norm(problem.left))
    queries = _power(scaled_norm(problem.query))
    exists = problem.mask & (problem.lengths() > 0)
    length = rows * queries.repeat_interleave(problem.M // queries.shape[-1], dim=-1)
    left = (problem.left / rows.unsqueeze(-1)).where(exists.unsqueeze(-1), 0.0)
    bound = (problem.bound / length).where(exists, 0.0)
    scale = _power(bound.abs().amax(-1)) if problem.M else bound.sum(-1) + 1.0
    query = problem.query / queries.unsqueeze(-1)
    unit = replace(problem, left=left, query=query, bound=bound / scale[:, None], mask=exists)
    return unit, length, scale


def _impossible(problem: MarginProblem) -> Tensor:
    """Find rows 0 ≥ b or 0 = b that no W satisfies, bool ``(B, M)``."""
    wrong = (problem.bound > 0) | (problem.equality & (problem.bound != 0))
    return problem.mask & (problem.lengths() == 0) & wrong


def _gram(unit: MarginProblem) -> Tensor:
    """Compute the inner products of all rows: token Gram times query Gram, ``(B, M, M)``."""
    S = unit.M // unit.query.shape[-2]
    queries = (unit.query @ unit.query.mT).repeat_interleave(S, -1).repeat_interleave(S, -2)
    return (unit.left @ unit.left.mT) * queries


def _norm(unit: MarginProblem, state: _State) -> Tensor:
    """Compute ‖W‖ of the solution for the active rows, ``(B, 1)``."""
    return (unit.bound * state.dual).sum(-1, keepdim=True).clamp_min(0.0).sqrt()


def _violation(unit: MarginProblem, state: _State, tolerance: float) -> Tensor:
    """Measure how much each row is violated, −1 within the tolerance; equalities come first."""
    amount = state.slack.abs().where(unit.equality, -state.slack)
    counts = state.usable & (amount > tolerance * (unit.bound.abs() + _norm(unit, state)))
    first = 1e6 * unit.equality
    return (amount + first).where(counts, -1.0)


def _pivot_until_feasible(unit: MarginProblem, state: _State) -> None:
    """Pivot all running problems until their active rows satisfy all others."""
    for iteration in range(100 + 20 * unit.M):
        worst, row = _violation(unit, state, _COARSE).max(-1)
        idle = state.entering < 0
        state.sign = torch.where(
            idle, -state.slack.gather(1, row[:, None])[:, 0].sign(), state.sign
        )
        state.entering = torch.where(idle & (worst > 0), row, state.entering)
        moving = (state.entering >= 0) & (state.outcome == _RUNNING)
        # Reading from the device blocks, so do it every few iterations.
        if iteration % 4 == 0 and not bool(moving.any()):
            return
        _step(unit, state, moving)


def _step(unit: MarginProblem, state: _State, moving: Tensor) -> None:
    """Pivot every moving problem once: the entering row comes in or a blocking row leaves."""
    row = state.entering.clamp_min(0)[:, None]
    column = state.tableau.gather(2, row[:, :, None].expand(-1, unit.M, 1))[..., 0]
    sign = state.sign[:, None]
    rate = sign * column.where(state.active, 0.0)
    nothing = _NOTHING * rate.abs().amax(-1, keepdim=True).clamp_min(1.0)
    blocks = state.active & ~unit.equality & (rate > nothing)
    step, block = (state.dual.clamp_min(0.0) / rate).where(blocks, torch.inf).min(-1, keepdim=True)
    unit_row = torch.zeros_like(state.dual).scatter_(1, row, sign)
    # Measure on the rows: a small distance has lost its digits in the tableau.
    distance = torch.linalg.vector_norm(unit.adjoint(unit_row - rate), dim=(1, 2))[:, None] ** 2
    missing = state.slack.gather(1, row).abs()
    dependent = distance.sqrt() <= _DEPENDENT * (1.0 + rate.abs().sum(-1, keepdim=True))
    full = (missing / distance).where(~dependent, torch.inf)

    mixed = (rate * unit.bound).abs().sum(-1, keepdim=True)
    rounding = _ROUNDING * (unit.bound.gather(1, row).abs() + mixed)
    ignore = (dependent & (missing <= rounding))[:, 0] & moving
    state.usable[ignore, row[ignore, 0]] = False
    proof = (dependent & torch.isinf(step))[:, 0] & moving & ~ignore
    multipliers = unit_row - rate.where(rate.abs() > nothing, 0.0)
    state.dual = torch.where(proof[:, None], multipliers, state.dual)
    state.outcome[proof] = INFEASIBLE

    moving = (moving & ~ignore & ~proof)[:, None]
    step = torch.minimum(step, full).where(moving, 0.0)
    enters = moving & (step == full)
    state.dual += step * (unit_row - rate)
    state.slack += step * sign * column.where(~state.active & ~dependent, 0.0)
    pivot = torch.where(enters, row, block)
    state.dual.scatter_(1, pivot, state.dual.gather(1, pivot).where(enters | ~moving, 0.0))
    _sweep(state, pivot, enters, moving)
    state.entering[(enters | ~moving)[:, 0]] = -1
    state.iterations += moving[:, 0]


def _sweep(state: _State, pivot: Tensor, enters: Tensor, moving: Tensor) -> None:
    """Perform a principal pivot on one diagonal entry of each moving tableau."""
    M = state.tableau.shape[-1]
    column = state.tableau.gather(2, pivot[:, :, None].expand(-1, M, 1))[..., 0]
    corner = column.gather(1, pivot).where(moving, 1.0)
    scaled = (column / corner).where(moving, 0.0)
    state.tableau -= column.unsqueeze(2) * scaled.unsqueeze(1)
    edge = (scaled * torch.where(enters, 1.0, -1.0)).scatter(1, pivot, -1.0 / corner)
    index = torch.arange(len(pivot), device=pivot.device)
    place = pivot[:, 0]
    state.tableau[index, place] = edge.where(moving, state.tableau[index, place])
    state.tableau[index, :, place] = edge.where(moving, state.tableau[index, :, place])
    flipped = state.active.gather(1, pivot) ^ moving
    state.active.scatter_(1, pivot, flipped)


def _refine(unit: MarginProblem, gram: Tensor, state: _State) -> Tensor:
    """Solve again for the active rows, tight at W itself; mark solved ones; rebuild tableaus."""
    both = state.active.unsqueeze(1) & state.active.unsqueeze(2)
    identity = torch.eye(unit.M, dtype=gram.dtype, device=gram.device)
    factor, failed = torch.linalg.cholesky_ex(gram.where(both, identity))
    # A set that is dependent because of rounding cannot be refined: return its W unrefined.
    state.outcome[(failed > 0) & (state.outcome == _RUNNING)] = STALLED
    factor = factor.where((failed == 0)[:, None, None], identity)
    running = (state.outcome == _RUNNING)[:, None]
    state.dual = state.dual.where(state.active | ~running, 0.0)
    W = unit.adjoint(state.dual)
    norm = _norm(unit, state)
    safety = 8 * torch.finfo(gram.dtype).eps * norm
    cheap = ~unit.equality & (state.dual * safety <= _CHEAP * norm**2)
    extra = torch.zeros_like(unit.bound)
    for step in range(6):
        below = unit.bound - unit.apply(W)
        if step > 1:  # aim above the bound of rows that rounding leaves violated, if cheap
            extra = extra + safety.where(cheap & (below > 1e-14 * unit.bound.abs()), 0.0)
        error = (below + extra).where(state.active & running, 0.0)
        change = torch.cholesky_solve(error.unsqueeze(-1), factor)[..., 0].nan_to_num(nan=0.0)
        state.dual = state.dual + change
        W = W + unit.adjoint(change)
    state.slack = unit.apply(W) - unit.bound
    signs = state.dual >= -_FINE * state.dual.abs().amax(-1, keepdim=True)
    clean = (signs | unit.equality).all(-1) & (_violation(unit, state, _FINE) < 0).all(-1)
    state.outcome[clean & running[:, 0]] = SOLVED
    state.tableau = _tableau(gram, factor, state.active)
    return W


def _tableau(gram: Tensor, factor: Tensor, active: Tensor) -> Tensor:
    """Compute the tableau of a set of active rows from scratch."""
    inside = active.unsqueeze(1) & active.unsqueeze(2)
    inverse = torch.cholesky_inverse(factor).where(inside, 0.0)
    coefficients = inverse @ gram  # G_AA⁻¹ G_AN in the active rows
    schur = gram - gram @ coefficients
    mixed = torch.where(active.unsqueeze(2), coefficients, coefficients.mT)
    tableau = torch.where(active.unsqueeze(1) ^ active.unsqueeze(2), mixed, schur)
    return torch.where(inside, -inverse, tableau)
