"""The first steps of training against the formulas with 60 digits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp

import attnmargin as am
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import Group, attempt, groups, seeded
from tests.hunt.oracle_training import DIGITS, SLOPES, Setting, Walk, precise, walk_KQ, walk_W

STEPS = 2
# Relative error of a step that is allowed beyond the doubt of rounding, and the doubt beyond which
# floats do not know the step.
_ERROR, _FACTOR, _UNKNOWN = 1e-7, 1e3, 1e-6
_IN_DOUBT = "in doubt"
_POWERS = (1.1, 1.75, 3.0, 4.0, 10.0)


@dataclass(frozen=True)
class Plan:
    """How one group is trained."""

    parameter: str
    p: float
    loss: str
    normalize: bool
    lr: float
    start: tuple[Any, ...] | None  # (W,) or (K, Q), each (G, d, d)

    def options(self) -> dict[str, Any]:
        """The arguments of :func:`attnmargin.train`."""
        method = "gd" if self.p == 2.0 else "mirror"
        init = self.start if self.start is None or len(self.start) > 1 else self.start[0]
        own = {"parameter": self.parameter, "method": method, "p": self.p, "loss": self.loss}
        return {**own, "normalize": self.normalize, "lr": self.lr, "init": init}


def _plan(rng: np.random.Generator, G: int, d: int) -> Plan:
    kind = rng.choice(["W", "W", "mirror", "KQ"])
    p = float(rng.choice(_POWERS)) if kind == "mirror" else 2.0
    size = float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    start: tuple[Any, ...] | None = (size * rng.standard_normal((G, d, d)),)
    if kind == "KQ":
        start = tuple(max(size, 0.1) * rng.standard_normal((2, G, d, d)))
    elif size == 0.0:
        start = None
    loss = str(rng.choice(list(SLOPES)))
    normalize = kind == "KQ" or bool(rng.random() < 0.6)
    lr = float(rng.choice([0.01, 0.1, 1.0]))
    return Plan("KQ" if kind == "KQ" else "W", p, loss, normalize, lr, start)


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per instance."""
    for k, group in enumerate(groups("training", seed)):
        plan = _plan(seeded(seed, "plan", k), len(group), group.X.shape[-1])
        yield attempt(lambda group, plan=plan: _compared(group, plan), group)  # type: ignore[misc]


def _compared(group: Group, plan: Plan) -> list[Case]:
    run = am.train(group.data(), steps=STEPS, record=1, **plan.options())
    cases = []
    for k in range(len(group)):
        with mp.workdps(DIGITS):
            walk = _walk(group, plan, k)
            answer, found = _judged(walk, run.W[:, k].numpy(), run.loss[:, k].tolist())
        about = f"{found} ({plan.parameter}, p = {plan.p:g}, {plan.loss}, lr = {plan.lr:g}, "
        about += f"normalize={plan.normalize})"
        arrays = group.arrays(k)
        for i, part in enumerate(plan.start or ()):
            arrays[f"init_{i}"] = part[k]
        known = found != _IN_DOUBT
        cases.append(Case(answer, group.family, group.adversarial, about, arrays, known))
    return cases


def _walk(group: Group, plan: Plan, k: int) -> Walk:
    setting, d = Setting(group.arrays(k), plan.loss), group.X.shape[-1]
    if plan.parameter == "KQ":
        assert plan.start is not None
        K, Q = (precise(part[k]) for part in plan.start)
        return walk_KQ(setting, K, Q, STEPS, plan.lr)
    W = precise(np.zeros((d, d)) if plan.start is None else plan.start[0][k])
    return walk_W(setting, W, STEPS, plan.lr, plan.p, plan.normalize)


def _judged(walk: Walk, W: Any, loss: list[float]) -> tuple[Answer, str]:
    """Compare all steps; where rounding decides the direction there is nothing to compare."""
    size = abs(walk.loss)
    if walk.doubt[1] < _UNKNOWN and size < 1e15:
        error = abs(walk.loss - loss[0]) / (1 + size)
        if not error < _ERROR + _FACTOR * walk.doubt[1]:
            return Answer.WRONG, f"the loss is {loss[0]}, exactly {mp.nstr(walk.loss, 17)}"
    for k in range(1, len(walk.weights)):
        exact = walk.weights[k]
        largest = max(abs(x) for part in walk.weights[: k + 1] for x in part.ravel())
        if not walk.doubt[k] < _UNKNOWN or not 1e-290 < largest < 1e290:
            return Answer.RIGHT, _IN_DOUBT
        if not np.isfinite(W[k]).all():
            return Answer.WRONG, f"W is not finite after step {k}"
        error = max(abs(x) for x in (exact - precise(W[k])).ravel())
        if error > (_ERROR + _FACTOR * walk.doubt[k]) * largest:
            return Answer.WRONG, f"step {k} is off by {float(error / largest):.1e}"
        moved = max(abs(x) for x in (exact - walk.weights[0]).ravel())
        if k == 1 and error > (_ERROR + _FACTOR * walk.doubt[k]) * moved + 1e-13 * largest:
            return Answer.WRONG, f"step 1 is off by {float(error / moved):.1e} of its length"
    return Answer.RIGHT, ""
