"""The certificate of a solution, from (problem, norm, W, dual) alone, whatever the solver.

For rows ``A(W) ≥ b`` any ``λ`` (free on equality rows, else ``λ ≥ 0``) proves

    bᵀλ / ‖Aᵀλ‖_dual  ≤  min ‖W‖.

So any W and λ, wherever they come from, bracket the optimum. If ``Aᵀλ = 0`` and ``bᵀλ > 0``, no W
exists (Farkas), in any norm. Everything is evaluated in float64.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.arrays import Array, floats
from attnmargin.base.compiled import one_thread
from attnmargin.base.display import Summarised, range_words, tally_words
from attnmargin.base.errors import InputError
from attnmargin.margin.norms import Frobenius, Lp, Norm, as_norm
from attnmargin.margin.problem import MarginProblem

# Rows contradict each other when λ cancels them up to rounding: this many units in the last place
# of λ, over the norm that the most demanding row of the proof needs by itself.
_CANCELS = 64
# Units in the last place of |a|ᵀ|W| by which the value of a row may be off, and by which rounding
# W may change the value of the most demanding row; a share of the bound that is never too large.
_ROUNDING, _ROUNDED, _SMALL = 8, 2, 1e-13
# A row whose value rounding can change by more than this share of its bound may not hold.
_BREAKS = 1e-4
# Units in the last place by which the two sides of a gap may be off.
_UNITS = 16


class Status(StrEnum):
    """What a certificate proves about one problem.

    ``local`` applies only to solutions of limited rank: feasible, within the rank limit, and
    within the certified gap of the best value without the limit.
    """

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    INACCURATE = "inaccurate"
    LOCAL = "local"


STATUSES = np.array(list(Status), dtype=object)
CODES = {status: place for place, status in enumerate(Status)}


def tolerance(norm: Norm, dtype: torch.dtype) -> float:
    """Return the largest relative gap that counts as optimal, for answers in a dtype.

    It is 1e-12 for the Frobenius norm and 1e-9 for the others, but at least 256 units in the last
    place of the dtype: a float32 answer cannot be better than float32.
    """
    exact = isinstance(norm, Frobenius) or norm == Lp(2.0)
    return max(1e-12 if exact else 1e-9, 256 * torch.finfo(dtype).eps)


_NUMBERS = ("gap", "primal", "dual", "lower", "upper", "rounding")


@final
@dataclass(frozen=True, repr=False)
class Certificate(Summarised):
    """Proof of optimality or infeasibility; every tensor has shape ``*B``.

    Where W is finite, the certificate concerns optimality. Where it is not, the certificate
    concerns infeasibility, and ``gap`` and ``primal`` are infinite.
    """

    gap: Tensor  # |upper − lower| / upper
    primal: Tensor  # worst row violation, relative to |b|, beyond rounding
    dual: Tensor  # worst λ < 0, relative to the largest; for a proof also the residual of Aᵀλ = 0
    lower: Tensor  # no feasible W is shorter than this; infinite for a proof of infeasibility
    upper: Tensor  # norm of W, scaled up until every inequality with b > 0 holds
    rounding: Tensor  # the gap that rounding the entries of W alone can cause
    tolerance: float
    cancels: float  # largest ``dual`` that a proof of infeasibility may have
    power: float | None  # p of a strictly convex norm

    def summary(self) -> dict[str, str]:
        """Return status and residuals, by name."""
        numbers = {name: range_words(getattr(self, name)) for name in ("gap", "primal", "dual")}
        return {"status": tally_words(self.status), **numbers, "tolerance": f"{self.tolerance:g}"}

    @property
    def worst(self) -> Tensor:
        """The largest of gap beyond rounding, primal and dual error, ``(*B,)``.

        Infinite where rounding W can break a row.
        """
        beyond = (self.gap - self.rounding).where(self.rounding <= _BREAKS, torch.inf)
        return torch.stack((beyond, self.primal, self.dual)).amax(0)

    @property
    def radius(self) -> Tensor:
        """No solution is farther from W, relative to ``upper`` and in the norm, ``(*B,)``.

        With ``u = upper`` and ``l = lower``

            ‖W − W⋆‖_p ≤ √((u² − l²) / (p − 1)), p ≤ 2;   2 ((u^p − l^p) / 2)^{1/p}, p ≥ 2:

        ‖·‖_p² is strongly convex (Ball, Carlen, Lieb); by Clarkson's inequality, ‖·‖_p^p falls by
        ‖(W − W⋆)/2‖^p at the midpoint, which is feasible. What W misses its rows by is added.
        Infinite in other norms, whose solutions need not be unique.
        """
        if self.power is None:
            return torch.full_like(self.gap, torch.inf)
        low = (1.0 - self.gap - _UNITS * torch.finfo(self.gap.dtype).eps).clamp_min(0.0)
        if self.power <= 2.0:
            radius = ((1.0 - low**2) / (self.power - 1.0)).sqrt()
        else:
            radius = 2.0 * (0.5 * (1.0 - low**self.power)) ** (1.0 / self.power)
        return radius + self.primal + _ROUNDING / _ROUNDED * self.rounding

    @cached_property
    def code(self) -> Tensor:
        """Each status as its place in :class:`Status`, int ``(*B,)``."""
        good, bad = CODES[Status.OPTIMAL], CODES[Status.INACCURATE]
        code = torch.where(self.worst <= self.tolerance, good, bad)
        none = torch.isinf(self.upper) & torch.isinf(self.primal)  # W is not finite
        proof = none & torch.isinf(self.lower) & (self.dual <= self.cancels)
        return torch.where(proof, CODES[Status.INFEASIBLE], code)

    @cached_property
    def status(self) -> Any:
        """A :class:`Status`, or a numpy array of them with the batch shape."""
        statuses: NDArray[Any] = STATUSES[self.code.cpu().numpy()]
        return statuses

    def __getitem__(self, index: Any) -> "Certificate":
        """Return members of the batch, indexed like a tensor."""
        return replace(self, **{name: getattr(self, name)[index] for name in _NUMBERS})

    def to(self, device: torch.device | str) -> "Certificate":
        """Return the same numbers on a device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in _NUMBERS})


def _lift(rows: Tensor, noise: Tensor, problem: MarginProblem) -> Tensor:
    """Find the least factor ≥ 1 that makes W satisfy all inequalities with b > 0.

    It is infinite if a row is not positive by more than rounding.
    """
    counts = problem.mask & ~problem.equality & (problem.bound > 0)
    factor = (problem.bound / rows).where(rows > noise, torch.inf)
    return _largest(factor.where(counts, 1.0)).clamp_min(1.0)


def _largest(rows: Tensor) -> Tensor:
    """Take the maximum over rows; 0 if there are none."""
    if rows.shape[-1] == 0:
        return rows.new_zeros(rows.shape[:-1])
    return rows.amax(-1)


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divide, with 0/0 = 0."""
    return torch.where(numerator == 0, 0.0, numerator / denominator)


def _numbers(name: str, value: Array, problem: MarginProblem, shape: tuple[int, ...]) -> Tensor:
    given = floats(name, value).to(torch.float64)
    full = (*problem.batch_shape, *shape)
    if given.shape == full[:-1] and shape[-1] == 1:
        given = given.unsqueeze(-1)
    if given.shape != full:
        raise InputError(name, f"shape {tuple(given.shape)}", f"{full}, as the problem has it")
    return given.to(problem.left.device)


@one_thread
def certify(
    problem: MarginProblem,
    norm: str | float | Norm,
    W: Array,
    dual: Array,
    *,
    exact: bool = False,
) -> Certificate:
    """Bracket ``min ‖W‖`` over the rows of a problem by any W and any multipliers.

    Args:
        problem: the rows, batch ``*B``.
        norm: a name, a number p > 1, or a norm object, as in :func:`attnmargin.solve`.
        W: ``(*B, d, e)``; not finite where ``dual`` is to prove infeasibility.
        dual: ``(*B, M)``, one multiplier per row, up to a positive factor per problem.
        exact: evaluate everything in rational numbers, and roots and powers to 50 digits. Slow: a
            second a problem. An infeasible problem is one whose rows contradict each other exactly.

    Returns:
        A :class:`Certificate`. Bad numbers do not raise; the certificate reports them.

    Example:
        >>> import attnmargin as am
        >>> problem = am.margin_problem([[2.0, 0.0]], [[1.0]])
        >>> am.certify(problem, "fro", [[0.5], [0.0]], [1.0]).status
        <Status.OPTIMAL: 'optimal'>
        >>> float(am.certify(problem, "fro", [[0.625], [0.0]], [1.0]).gap)
        0.2
    """
    norm = as_norm(norm)
    dtype = problem.left.dtype
    W = _numbers("W", W, problem, problem.shape)
    dual = _numbers("dual", dual, problem, (problem.M,))
    problem = problem.as_dtype(torch.float64)
    if exact:
        return _exactly(certify(problem, norm, W, dual), problem, norm, W, dual)
    length = problem.lengths()
    lower, dual_error, valid, total = _dual_side(problem, norm, dual)
    finite = torch.isfinite(torch.linalg.vector_norm(W, ord=torch.inf, dim=(-2, -1)))
    eps = torch.finfo(dtype).eps
    cancels = _CANCELS * eps
    power = norm.p if isinstance(norm, Lp) else 2.0 if isinstance(norm, Frobenius) else None
    limits = tolerance(norm, dtype), cancels, power
    if bool(finite.all()):
        upper, primal, rounding = _primal_side(problem, norm, W, length, eps)
        gap = _gap(lower, upper)
        return Certificate(gap, primal, dual_error, lower, upper, rounding, *limits)
    W = W.where(finite[..., None, None], 0.0)
    upper, primal, rounding = _primal_side(problem, norm, W, length, eps)
    proof = torch.maximum(dual_error, _cancelling(problem, valid, total, length))
    proved = ~finite & (lower > 0) & (proof <= cancels)
    return Certificate(
        _gap(lower, upper).where(finite, torch.inf),
        primal.where(finite, torch.inf),
        dual_error.where(finite, proof),
        lower.masked_fill(proved, torch.inf),
        upper.where(finite, torch.inf),
        rounding,
        *limits,
    )


def extended(
    certificate: Certificate, parts: Iterable[MarginProblem], norm: Norm, W: Tensor
) -> Certificate:
    """Extend a certificate to further rows, whose multipliers are zero.

    The lower bound stays. The norm of W, scaled up, the worst violation and the rounding are the
    largest over all rows, so each part is evaluated by itself.

    Args:
        certificate: of one problem and W.
        parts: further rows, float64, without a batch.
        W: ``(d, e)``, float64; where it is not finite, there is nothing to extend.
    """
    if not bool(torch.isfinite(W).all()):
        return certificate
    eps = torch.finfo(W.dtype).eps
    found = [(certificate.upper, certificate.primal, certificate.rounding)]
    found += [_primal_side(part, norm, W, part.lengths(), eps) for part in parts]
    upper, primal, rounding = (torch.stack(x).amax(0) for x in zip(*found, strict=True))
    gap = _gap(certificate.lower, upper)
    return replace(certificate, gap=gap, upper=upper, primal=primal, rounding=rounding)


def _exactly(
    plain: Certificate, problem: MarginProblem, norm: Norm, W: Tensor, dual: Tensor
) -> Certificate:
    """Replace the numbers of a certificate by exact ones."""
    from attnmargin.margin.exact.certificate import ExactNumbers, exact_numbers

    numbers = {name: getattr(plain, name).clone() for name in ExactNumbers._fields}
    for index in problem.members():
        found = exact_numbers(problem[index], norm, W[index], dual[index])
        for name, value in found._asdict().items():
            numbers[name][index] = value
    return replace(plain, **numbers)


def _cancelling(problem: MarginProblem, valid: Tensor, total: Tensor, length: Tensor) -> Tensor:
    """Measure how far rows are from adding up to 0 ≥ positive: 1 / (the norm λ proves W needs).

    The unit is the norm that the most demanding row of the proof needs by itself, max |b| / ‖a‖.
    """
    used = (valid != 0) & (length > 0)
    single = _largest((problem.bound.abs() / length).where(used, 0.0))
    gain = (problem.bound * valid).sum(-1)
    return _ratio(Frobenius().value(total) * single, gain).where(gain > 0, torch.inf)


def _gap(lower: Tensor, upper: Tensor) -> Tensor:
    """Compute ``|upper − lower| / upper``, infinite where either is."""
    return _ratio((upper - lower).abs(), upper).nan_to_num(nan=torch.inf, posinf=torch.inf)


def _dual_side(
    problem: MarginProblem, norm: Norm, dual: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the lower bound, the error of λ, its valid part scaled to size one, and ``Aᵀλ``."""
    given = dual.where(problem.mask, 0.0)
    largest = _largest(given.abs()).nan_to_num(nan=torch.inf, posinf=torch.inf)
    given = (given / largest.where(largest > 0, 1.0).unsqueeze(-1)).nan_to_num(nan=0.0)
    valid = given.where(problem.equality, given.clamp_min(0.0))
    error = _largest(valid - given).where(torch.isfinite(largest), torch.inf)
    total = problem.adjoint(valid)
    gain = (problem.bound * valid).sum(-1)
    usable = (gain > 0) & torch.isfinite(largest)
    return (gain / norm.dual_value(total)).where(usable, 0.0), error, valid, total


def _primal_side(
    problem: MarginProblem, norm: Norm, W: Tensor, length: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the upper bound, ``‖W‖`` scaled up for its inequalities, and the worst violation.

    A violation beyond the rounding of the row's value counts relative to its bound, or to
    ``‖a‖ ‖W‖`` if the bound is zero. The third number is what rounding the entries of W does to
    the value of its most demanding row: no W in floating point can have a smaller gap.
    """
    rows = problem.apply(W)
    missing = problem.bound - rows
    violation = missing.abs().where(problem.equality, missing.clamp_min(0.0))
    frobenius = Frobenius().value(W)
    size = length * frobenius.unsqueeze(-1)
    there = problem.mask & (problem.bound != 0)
    coarse = (
        _largest(_ratio(_ROUNDING * eps * size, problem.bound.abs()).where(there, 0.0)) > _SMALL
    )
    if bool(coarse.any()):  # |a|ᵀ|W| is never above ‖a‖ ‖W‖, but slower
        size = problem.sizes(W).where(coarse.unsqueeze(-1), size)
    noise = _ROUNDING * eps * size
    relative = _ratio((violation - noise).clamp_min(0.0), problem.bound.abs())
    relative = relative.where(problem.bound != 0, _ratio(violation, size))
    lift = _lift(rows, noise, problem)
    value = frobenius if isinstance(norm, Frobenius) else norm.value(W)
    upper = (value * lift).masked_fill(torch.isinf(lift), torch.inf)
    risky = there & (missing >= -noise)  # rounding can break it
    demand = _largest(_ratio(size, problem.bound.abs()).where(risky, 0.0))
    return upper, _largest(relative.where(problem.mask, 0.0)), _ROUNDED * eps * demand
