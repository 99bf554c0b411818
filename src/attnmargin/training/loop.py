"""The training loop: every method of the papers, for a batch of trials at once."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

import torch
from torch import Tensor

from attnmargin.attention.heads import HeadLike, ScoreHead
from attnmargin.attention.losses import Exponential, Linear, Log, Logistic, Loss, Squared
from attnmargin.attention.softmax import Objective, Slope, objective
from attnmargin.base.arrays import Array, as_tensor
from attnmargin.base.checks import check_kind, check_number, check_whole
from attnmargin.base.compiled import can_compile, one_thread
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.implied import check_parameter
from attnmargin.margin.norms import Norm
from attnmargin.training.methods import Adam, Method, Steepest, as_method
from attnmargin.training.rates import Guarded, Planned, Polyak, Rate, Rates, as_rates
from attnmargin.training.rules import Mirror, Rule
from attnmargin.training.start import fixed_directions, joint_start, movable_start
from attnmargin.training.trajectory import Recorder, Trajectory, Watch
from attnmargin.training.weights import Coefficients, Entries, Weights

# Losses that the compiled kernel supports, in its numbering.
KERNEL_LOSSES: tuple[type[Loss], ...] = (Logistic, Exponential, Linear, Squared, Log)
# The first of them fall everywhere, so that the kernel knows their least value for Polyak's rate.
_FALLING = KERNEL_LOSSES[:3]


@one_thread
def train(
    data: AttentionData,
    parameter: str = "W",
    method: Method = "gd",
    *,
    norm: str | float | Norm | None = None,
    p: float | Array = 2.0,
    lr: Rate = 0.1,
    steps: int = 2000,
    normalize: bool = True,
    loss: str | Loss = "logistic",
    head: HeadLike = "linear",
    penalty: float = 0.0,
    init: Any = None,
    record: int = 1,
    width: int | None = None,
    fixed: Array | None = None,
    watch: Watch | None = None,
    keep_weights: bool = True,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> Trajectory:
    """Train attention weights, all trials of a batch at once.

        L = (1/n) Σ ℓ(y_i h(X_iᵀ softmax(X_i W z_i)))

    The direction of the gradient stays exact even after the softmax saturates (see
    :mod:`attnmargin.attention.softmax`), so normalised descent continues where plain gradients
    would be zero.

    Args:
        parameter: "W"; "KQ" for ``W = K Qᵀ`` (paper A, KQ-GD); "vW" for head and weights together
            (paper B, ℓp-JointGD).
        method: "gd" (paper A, W-GD); "mirror" with the potential ``(1/p) Σ |w|^p`` (paper B,
            ℓp-AttGD); "steepest" for steepest descent in ``norm``; "adam"; or settings of the last
            two, such as ``am.methods.Steepest("spectral", momentum=0.9)``.
        norm: of method "steepest": "spectral", "max", "sum", "fro", "rows", "columns", "nuc", a
            power p, or a norm object. Steps have length lr in this norm.
        p: power of the mirror potential, a number or one per trial.
        lr: a number, one per trial ``(*B)``, a function of the step, "auto" for 1/L_W (paper A,
            Lemma 4; for the log-loss paper C, (23)), or "polyak" for ``(L − L⋆)/‖∇L‖²`` with steps
            of length at most one, both for plain descent; or :class:`Guarded`, for normalised
            descent on W. ``am.methods.Decaying(0.1, 0.5)`` is the function ``0.1 t^{-1/2}``.
        normalize: divide the gradient by its dual norm, ``‖∇L‖_q`` with ``1/p + 1/q = 1`` for
            mirror descent; with "KQ" and "vW", divide each part by its own. Adam does so by itself.
        penalty: λ of the added term ``λ‖W‖²``, ``λ(‖K‖² + ‖Q‖²)`` or ``λ(‖v‖² + ‖W‖²)``; it may be
            as small as 1e-300.
        init: None for zero W and v, and for K and Q with entries uniform in ±1/√d; an array; a pair
            ``(K, Q)`` or ``(v, W)``; or ``run.last`` of an earlier run.
        record: number of steps between records; the last step is always recorded.
        width: width m of K and Q, ``(d, m)``; d by default.
        fixed: matrices ``(*B, m, d, d)`` in whose span W does not move; gradient descent on W only.
            Steps follow the projected gradient, normalised by its own norm.
        watch: functions of W ``(*B, d, d)`` by name, whose values are recorded too.
        keep_weights: record W itself; without it a long run needs little memory.
        progress: called at every record with the step and the number of steps.
        seed: seed of the random start.

    Returns:
        A :class:`Trajectory`, recorded at steps 0, record, 2·record, …, steps.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 6, trials=5, name="train")
        >>> run = am.train(data, steps=4000, record=2000)
        >>> run.W.shape, run.steps.tolist()
        (torch.Size([3, 5, 6, 6]), [0, 2000, 4000])
        >>> solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1]))
        >>> bool((am.correlation(run.W[-1], solution.W) > 0.99).all())
        True
    """
    check_kind("data", data, AttentionData)
    method = as_method(method, norm)
    rule = _rule(data, method, p, normalize, penalty, lr)
    _check(parameter, steps, record)
    _check_guard(lr, parameter == "W" and method == "gd" and normalize and not penalty)
    if parameter == "vW" and not (isinstance(head, str) and head == "linear"):
        raise InputError("head", "another head with parameter 'vW'", "the linear head, trained")
    if width is not None and parameter != "KQ":
        got = f"{width!r} with parameter {parameter!r}"
        raise InputError("width", got, "parameter 'KQ': it is the number of columns of K and Q")
    goal = objective(with_head(data, parameter), head, loss)
    auto = isinstance(lr, str) and lr == "auto"
    if auto and isinstance(head, ScoreHead) and not isinstance(goal.loss, Log):
        raise InputError("lr", "'auto' with a ScoreHead", "the linear head of Lemma 4, or log-loss")
    session = _Session(goal, rule, parameter, init, width, seed, fixed)
    rates = _both_rates(lr, goal, data, parameter, float(penalty))
    rows = Recorder(goal.flat, watch, keep_weights)
    session.run(rates, steps, record, rows, progress)
    return rows.trajectory(session.parts(), precision_notes(data))


def _check(parameter: str, steps: int, record: int) -> None:
    check_parameter(parameter)
    check_whole(0, steps=steps)
    check_whole(record=record)


def _check_guard(lr: Rate | tuple[Rate, ...], fits: bool) -> None:
    several = isinstance(lr, tuple) and any(isinstance(rate, Guarded) for rate in lr)
    if several or (isinstance(lr, Guarded) and not fits):
        needs = "a single one, for normalised descent on W without a penalty"
        raise InputError("lr", "a guarded rate", needs)


def _rule(
    data: AttentionData,
    method: Method,
    p: float | Array,
    normalize: bool,
    penalty: float,
    lr: Rate,
) -> Rule:
    power = _power(data, p)
    if method != "mirror" and not (isinstance(power, float) and power == 2.0):
        got = "a power other than 2"
        if isinstance(method, str):
            raise InputError("p", f"{got} with method 'gd'", "method='mirror'")
        raise InputError("p", f"{got} with method {method}", "method='mirror', or norm=p")
    if isinstance(lr, str) and (normalize or method != "gd"):
        raise InputError("lr", repr(lr), "plain descent: normalize=False and method 'gd'")
    if isinstance(lr, str) and lr == "polyak" and penalty:
        raise InputError("lr", "'polyak' with a penalty", "no penalty: the best loss is not known")
    penalty = check_number("penalty", penalty, "a finite number that is not negative")
    if not 0.0 <= penalty < math.inf:
        raise InputError("penalty", f"{penalty:g}", "a finite number that is not negative")
    log_penalty = math.log(2.0) + math.log(penalty) if penalty > 0.0 else None
    if check_number("normalize", normalize, "True or False") not in (0.0, 1.0):
        raise InputError("normalize", repr(normalize), "True or False")
    if isinstance(method, Steepest | Adam):
        return method.rule(bool(normalize), log_penalty)
    return Mirror(power, bool(normalize), log_penalty)


def _power(data: AttentionData, p: float | Array) -> float | Tensor:
    """Check p; return a number, or ``(B, 1, 1)`` if it differs between trials."""
    powers = as_tensor("p", p).to(torch.float64)
    bad = ~(torch.isfinite(powers) & (powers > 1.0))
    if bool(bad.any()):
        raise InputError("p", f"{float(powers[bad].flatten()[0]):g}", "finite powers p > 1")
    if powers.ndim == 0:
        return float(powers)
    if powers.shape != data.batch_shape:
        needs = f"a number, or one per trial, {tuple(data.batch_shape)}"
        raise InputError("p", f"shape {tuple(powers.shape)}", needs)
    return powers.reshape(-1, 1, 1).to(data.X)


def with_head(data: AttentionData, parameter: str) -> AttentionData:
    """Add a zero head if the head is to be trained and the data have none."""
    if parameter != "vW" or data.v is not None:
        return data
    return AttentionData(data.X, data.z, data.y, data.X.new_zeros(data.d), data.mask)


def _both_rates(
    lr: Rate | tuple[Rate, Rate],
    goal: Objective,
    data: AttentionData,
    parameter: str,
    penalty: float,
) -> tuple[Rates, Rates]:
    """Build the rates of W and v: two for a pair with "vW", otherwise the same."""
    v = None if data.v is None else data.v.expand(*data.batch_shape, data.d).reshape(-1, data.d)
    if parameter == "vW" and isinstance(lr, str):
        raise InputError("lr", repr(lr), "numbers or functions of the step for 'vW'")
    if parameter == "vW" and isinstance(lr, tuple):
        if len(lr) != 2:
            raise InputError("lr", f"{len(lr)} rates", "one, or a pair for W and v")
        return as_rates(lr[0], goal, v, penalty), as_rates(lr[1], goal, v, penalty)
    # Without "vW" a tuple means one rate per trial.
    single = torch.tensor(lr, dtype=torch.float64) if isinstance(lr, tuple) else lr
    rates = as_rates(single, goal, v, penalty)
    return rates, rates


def precision_notes(data: AttentionData) -> tuple[str, ...]:
    if data.X.dtype == torch.float64:
        return ()
    eps = torch.finfo(data.X.dtype).eps
    return (
        f"{data.X.dtype}: logits are rounded by {eps:.0e} of their size, so beyond logits of about "
        f"{1 / eps:.0e} the order of tokens, and well before the direction, is rounding.",
    )


class _Session:
    """Weights and objective of one run."""

    def __init__(
        self,
        goal: Objective,
        rule: Rule,
        parameter: str,
        init: Any,
        width: int | None,
        seed: int,
        fixed: Array | None,
    ) -> None:
        self.goal, self.rule, self.flat = goal, rule, goal.flat
        self.v: Tensor | None = None
        self.weights: Weights
        if parameter == "vW":
            if fixed is not None:
                raise InputError("fixed", "directions with 'vW'", "gradient descent on W")
            self.v, self.weights = joint_start(self.flat, init)
            self._score()
            return
        start = movable_start(self.flat, parameter, init, width, seed)
        plain = isinstance(rule, Mirror) and rule.plain
        plain = plain and (init is None or rule.log_penalty is None)
        if fixed is not None:
            if not isinstance(start, Entries) or not plain:
                raise InputError("fixed", "directions", "gradient descent on W, without a penalty")
            self.weights = Coefficients(self.flat, start.W, fixed_directions(self.flat, fixed))
        elif isinstance(start, Entries) and plain and Coefficients.pays(self.flat):
            self.weights = Coefficients(self.flat, start.W)
        else:
            self.weights = start

    def _score(self) -> None:
        """Update the scores for the current head."""
        assert self.v is not None
        self.goal.use_head(self.v.squeeze(-1))

    def run(
        self,
        rates: tuple[Rates, Rates],
        steps: int,
        record: int,
        rows: Recorder,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Train and record."""
        k = 0
        while True:
            slope = self.goal.slope(self.weights.logits())
            head = None if self.v is None else self._head_direction(slope)
            rows.add(k, self.weights, slope, self.v, head)
            if progress is not None:
                progress(k, steps)
            if k == steps:
                return
            end = min(k + record, steps)
            self._advance(slope, rates, k, end)
            k = end

    def _advance(self, slope: Slope, rates: tuple[Rates, Rates], k: int, end: int) -> None:
        """Take steps k to end, compiled if possible; ``slope`` belongs to step k."""
        lr = rates[0]
        if self._plans(lr) and isinstance(self.rule, Mirror) and self._compiles():
            assert self.goal.gamma is not None
            assert self.goal.rise is not None
            scores = self.goal.gamma.contiguous(), self.goal.rise.contiguous()
            loss = KERNEL_LOSSES.index(type(self.goal.loss))
            self.weights.advance(scores, lr.between(k, end), loss, self.rule)
            return
        for step in range(k, end):
            self._step(slope, rates, step)
            if step + 1 < end:
                slope = self.goal.slope(self.weights.logits())

    def _plans(self, lr: Rates) -> TypeGuard[Planned | Polyak]:
        """Check whether the compiled kernel knows the rates of all steps."""
        if isinstance(lr, Polyak):
            return isinstance(self.weights, Coefficients) and type(self.goal.loss) in _FALLING
        return isinstance(lr, Planned)

    def _compiles(self) -> bool:
        """Check whether the compiled kernel supports this run."""
        X = self.flat.X
        known = self.goal.head is None and type(self.goal.loss) in KERNEL_LOSSES and self.v is None
        plain = X.device.type == "cpu" and X.dtype == torch.float64 and can_compile()
        return known and plain

    def _step(self, slope: Slope, rates: tuple[Rates, Rates], k: int) -> None:
        lr = rates[0](k, slope, self.weights)
        if rates[0].adaptive:  # these rates already account for the scale of the gradient
            slope = replace(slope, log_scale=torch.zeros_like(slope.log_scale))
        if self.v is not None:
            self._step_head(slope, rates[1](k, slope, self.weights))
        self.weights.descend(slope, lr, self.rule)
        if self.v is not None:
            self._score()

    def _step_head(self, slope: Slope, lr: Tensor) -> None:
        """Step v along ``(1/n) Σ κ_i y_i o_i``."""
        assert self.v is not None
        D, log_scale = self._head_direction(slope)
        self.v = self.rule.step(self.v, D, log_scale, lr, "v")

    def _head_direction(self, slope: Slope) -> tuple[Tensor, Tensor]:
        assert self.v is not None
        assert self.flat.y is not None
        o = (slope.s.unsqueeze(-2) @ self.flat.X).squeeze(-2)
        largest = slope.log_slope.amax(-1, keepdim=True)
        largest = largest.where(torch.isfinite(largest), 0.0)
        pull = (slope.log_slope - largest).exp() * self.flat.y
        pull = pull if slope.falls is None else pull * slope.falls
        D = (pull.unsqueeze(-1) * o).sum(-2).unsqueeze(-1)
        return D, largest.unsqueeze(-1) - math.log(o.shape[-2])

    def parts(self) -> tuple[Tensor, ...]:
        """Return the trained tensors: (W,), (K, Q) or (v, W)."""
        parts = self.weights.parts()
        return parts if self.v is None else (self.v[..., 0], *parts)
