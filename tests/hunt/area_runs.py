"""Runs that Theorem A or B certifies, continued: do they stay with their selection and bounds?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.prediction.course import Course
from attnmargin.prediction.plain import plain_run
from attnmargin.theory.guarantees.case import Case as Instances
from attnmargin.theory.guarantees.case import build_case
from attnmargin.theory.guarantees.proof import Proof, build_selected, prove
from attnmargin.theory.staying import excess_loss
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import attempt, groups, seeded

_FAMILIES = ["copies", "gaussian", "near ties", "sphere", "mild scales", "masks", "integers"]
_SHAPES = ((5, 5, 5), (6, 8, 10), (5, 5, 20), (10, 10, 20))
_LOSSES = ("logistic", "logistic", "exponential", "linear")
# Instances of a batch of the papers' sizes; bisections of a push towards a higher token.
_TRIALS, _HALVINGS, _RECORDS = 24, 8, 50
# Further steps of runs that have not arrived.
_LATER = 200_000
# What rounding may add to a distance, relative to its bound and to ‖W‖.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """Instances, and how they are trained."""

    family: str
    adversarial: bool
    data: am.AttentionData
    loss: str


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per certified run."""
    for k, group in enumerate(groups("runs", seed, _FAMILIES, most=3, size=_TRIALS)):
        rng = seeded(seed, "runs", k)
        loss = str(rng.choice(_LOSSES))
        yield attempt(
            lambda own, rng=rng, loss=loss: continued(  # type: ignore[misc]
                Setting(own.family, own.adversarial, own.data(), loss), rng
            ),
            group,
        )
        shape = _SHAPES[k % len(_SHAPES)]
        data = am.random_data(*shape, trials=_TRIALS, name=f"runs {k}", seed=seed)
        yield continued(Setting(f"{shape}", False, data, loss), rng)


def continued(setting: Setting, rng: np.random.Generator) -> list[Case]:
    """Certify points, reached and pushed, and go on with the longest steps and shorter ones."""
    data, cases = setting.data, []
    d, B = data.d, data.batch_shape.numel()
    steps = int(10.0 ** rng.uniform(1.7, 3.2))
    case = build_case(data, setting.loss)
    unit = case.of_best.value.nan_to_num(nan=1.0).clamp(1e-3, 1e3)
    start = torch.from_numpy(rng.standard_normal((B, d, d))) * unit[:, None, None] / d
    start = start * float(rng.choice([0.0, 1.0, 3.0]))
    lr = 0.05 * unit
    W = am.train(data, steps=steps, record=steps, lr=lr, init=start, loss=setting.loss).W[-1]
    kinds = {"reached": W}
    if rng.random() < 0.7:
        kinds["pushed"] = _pushed(case, W, 0.3 * lr)
    for kind, point in kinds.items():
        found = prove(case, point, 0.3 * lr)
        for share in (1.0, float(rng.uniform(0.05, 0.5))):
            length = share * found.longest.where(found.proved, 0.0)
            usable = length.where(torch.isfinite(length), 10.0 * unit).clamp_max(100.0 * unit)
            cases += _judged(setting, case, (kind, point, usable, 10 * steps))
    return cases


def _pushed(case: Instances, W: Tensor, step: Tensor) -> Tensor:
    """Move towards the higher token next to the margin, as far as the certificate allows."""
    frame = build_selected(case, case.selected(case.logits(W)))
    row = frame.delta.where(frame.problem.mask & (frame.gap <= 0), torch.inf)
    row = row.argmin(-1) if row.shape[-1] else torch.zeros(len(W), dtype=torch.int64)
    rows = torch.einsum("bmd,bme->bmde", frame.problem.left, frame.problem.right)
    push = rows[torch.arange(len(W)), row]
    push = push / push.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-300)
    low, high = torch.zeros(len(W), dtype=W.dtype), W.norm(dim=(-2, -1)).clamp_min(1e-3)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        good = prove(case, W - middle[:, None, None] * push, step).proved
        low, high = torch.where(good, middle, low), torch.where(good, high, middle)
    return W - low[:, None, None] * push


def _judged(
    setting: Setting, case: Instances, asked: tuple[str, Tensor, Tensor, int]
) -> list[Case]:
    """Continue the points that are certified for these steps."""
    kind, W, length, steps = asked
    found = prove(case, W, length)
    rows = (found.proved & (length > 0)).nonzero()[:, 0]
    if len(rows) == 0:
        return []
    data, part = setting.data[rows], case.take(rows)
    proof = found.map(lambda x: x[rows])
    record = max(steps // _RECORDS, 1)
    run = am.train(data, steps=steps, record=record, lr=length[rows], init=W[rows],
                   loss=setting.loss)  # fmt: skip
    wrong = broken_bounds(part, proof, run)
    for j in _late(data, part, proof, run):
        wrong[j] = wrong[j] or "another selection at the end"
    course = Course("W", 2.0, setting.loss, length[rows], True, steps, (W[rows],))
    early = am.train(data, steps=200, record=20, lr=length[rows], init=W[rows], loss=setting.loss)
    plain = plain_run(data, course, early)
    cases = []
    for j, k in enumerate(rows.tolist()):
        word = "A" if bool(proof.by_level[j]) else "B"
        text = wrong[j] or ("" if bool(plain.agrees[j]) else "plain torch selects something else")
        about = f"{text} ({kind}, Theorem {word}, steps of {float(length[k]):.3g}, {setting.loss})"
        arrays = {"W": W[k].numpy(), **_arrays(data[j])}
        answer = Answer.WRONG if text else Answer.RIGHT
        cases.append(Case(answer, setting.family, setting.adversarial, about, arrays))
    return cases


def _arrays(data: am.AttentionData) -> dict[str, Any]:
    own = {name: getattr(data, name) for name in ("X", "z", "y", "v", "mask")}
    return {name: x.numpy() for name, x in own.items() if x is not None}


def broken_bounds(case: Instances, proof: Proof, run: am.Trajectory) -> list[str]:
    """Compare a run with what was proved at its start; a text per trial, empty if all is kept."""
    found = [""] * len(proof.proved)
    assert proof.funnel is not None
    frame, start = build_selected(case, proof.selection), run.W[0]
    W_mm, theta2 = frame.solution.W, proof.funnel.tube.theta**2
    r0 = _residual(frame, proof, start)
    last = torch.full_like(theta2, torch.inf)
    for k in range(len(run.steps)):
        W = run.W[k]
        logits = case.logits(W)
        same = (case.selected(logits) == proof.selection).flatten(1).all(-1)
        least = _least_share(case, proof, logits)
        norm, excess = W.norm(dim=(-2, -1)), excess_loss(case.goal, logits)
        aligned = am.correlation(W, W_mm)
        grown = theta2 * ((W - start) * W_mm).sum((-2, -1))
        r = r0 + (W - start) - grown[:, None, None] * W_mm
        tube = proof.funnel.tube
        bound = (tube.radius**2 + 2.0 * tube.growth * grown.clamp_min(0.0)).sqrt()
        outside = r.norm(dim=(-2, -1)) > bound * (1.0 + _ROUNDING) + _ROUNDING * norm
        checks = {
            "left the selection": ~same & (proof.by_funnel | (proof.share > 0.5)),
            "share": least < proof.share - 1e-12,
            "correlation": aligned < proof.correlation(norm) - 1e-9,
            "left the funnel": proof.by_funnel & (outside | (grown < -_ROUNDING * norm)),
            "the loss rises": proof.by_level & (excess > last * (1.0 + 1e-9)),
            "gradient": proof.by_funnel & (run.log_gradient[k] > proof.funnel.log_gradient + 1e-6),
        }
        last = excess
        for name, wrong in checks.items():
            for j in wrong.nonzero()[:, 0].tolist():
                found[j] = found[j] or f"{name} at step {int(run.steps[k])}"
    return found


def _late(data: am.AttentionData, case: Instances, proof: Proof, run: am.Trajectory) -> list[int]:
    """Find the runs that do not arrive even if they go on with the longest steps."""
    chosen = case.selected(case.logits(run.W[-1]))
    rows = (chosen != proof.selection).flatten(1).any(-1).nonzero()[:, 0]
    if len(rows) == 0:
        return []
    goal = case.goal.loss
    longer = am.train(data[rows], lr=proof.longest[rows], steps=_LATER, record=_LATER,
                      init=run.W[-1][rows], loss=goal)  # fmt: skip
    part = case.take(rows)
    ends = part.selected(part.logits(longer.W[-1]))
    late = (ends != proof.selection[rows]).flatten(1).any(-1)
    return [int(j) for j in rows[late]]


def _least_share(case: Instances, proof: Proof, logits: Tensor) -> Tensor:
    chosen = proof.selection.reshape(*logits.shape[:2], 1)
    return torch.softmax(logits, -1).gather(-1, chosen)[..., 0].amin(-1)


def _residual(frame: Any, proof: Proof, W: Tensor) -> Tensor:
    """r₀, from its definition: in the span of the support rows, with their offsets."""
    rows = torch.einsum("bmd,bme->bmde", frame.problem.left, frame.problem.right).flatten(2)
    found = torch.zeros_like(W)
    for j in proof.by_funnel.nonzero()[:, 0].tolist():
        S = frame.held[j]
        A = rows[j, S]
        dual = torch.linalg.lstsq(A @ A.mT, torch.ones(len(A), 1, dtype=W.dtype)).solution[:, 0]
        weight = dual / dual.sum()
        ideal = (frame.log_kappa + frame.gap.log() + frame.weight)[j, S]
        ideal = ideal - (frame.count * dual).log()
        m = A @ W[j].flatten()
        x = m - (weight * m).sum() - (ideal - (weight * ideal).sum())
        y = torch.linalg.lstsq(A @ A.mT, x[:, None]).solution[:, 0]
        found[j] = (y @ A).reshape(W[j].shape)
    return found
