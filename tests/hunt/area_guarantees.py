"""Verdicts *guaranteed* against training from zero, random and hostile starts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import attnmargin as am
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import Group, attempt, groups, seeded
from tests.hunt.truth import higher

_FAMILIES = ["gaussian", "sphere", "integers", "masks", "mild scales", "near ties", "collinear",
             "single"]  # fmt: skip
_LOSSES = ("logistic", "logistic", "exponential", "linear", "squared")
# Starts of either kind per instance.
_RANDOM, _HOSTILE = 5, 5
_SETTLED, _RECORDS = 0.999, 20
# Steps, and their length relative to the first attempt; a token far ahead falls back slowly.
_ATTEMPTS = ((3000, 1.0), (30_000, 0.1), (30_000, 1.0), (30_000, 30.0))


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per start of a guaranteed instance."""
    for k, group in enumerate(groups("guarantees", seed, _FAMILIES, most=2)):
        rng = seeded(seed, "starts", k)
        if k % 16 == 0:
            yield attempt(_vanishing, _perfect(group))
        yield attempt(lambda group, rng=rng: _compared(group, rng), group)  # type: ignore[misc]


def _perfect(group: Group) -> Group:
    """The best token of every sequence has a score of exactly one."""
    X, v = group.X.copy(), np.zeros_like(group.v)
    v[:, 0] = 1.0
    X[..., 0] = group.y[..., None] * (1.0 - np.abs(X[..., 0]) / 3.0)
    X[..., 0, 0] = group.y
    mask = None if group.mask is None else group.mask | (np.arange(X.shape[2]) == 0)
    return replace(group, X=X, v=v, mask=mask, family="perfect")


def _vanishing(group: Group) -> list[Case]:
    """The slope of the squared loss vanishes at a score of one: with that, nothing is proved."""
    data = group.data()
    verdict = am.predict(data, loss="squared", steps=1).verdict
    cases = []
    for k in range(len(group)):
        wrong = verdict[k] == am.Verdict.GUARANTEED
        answer = Answer.WRONG if wrong else Answer.RIGHT
        about = f"{verdict[k]} with the squared loss and scores of one"
        cases.append(Case(answer, group.family, True, about, group.arrays(k)))
    return cases


def _untied(group: Group) -> list[int]:
    """Instances in which every sequence has one best token, beyond doubt."""
    return [
        k for k in range(len(group)) if all(_unique(group, k, i) for i in range(group.y.shape[1]))
    ]


def _unique(group: Group, k: int, i: int) -> bool:
    seen = group.visible(k)[i].nonzero()[0].tolist()
    above = [all(higher(group, k, i, a, b) is True for b in seen if b != a) for a in seen]
    return sum(above) == 1


@dataclass(frozen=True)
class _Start:
    name: str
    W: Any  # (d, d)


def _starts(data: am.AttentionData, selection: Any, rng: np.random.Generator) -> list[_Start]:
    """Zero, random ones, and ones far along the directions of other selections."""
    d, n, T = data.d, data.n, data.T
    best = am.solve(am.token_problem(data.X, data.z, selection, data.mask))
    unit = float(best.value) if bool(torch.isfinite(best.value)) else 1.0
    unit = unit if unit > 0 else 1.0
    starts = [_Start("zero", np.zeros((d, d)))]
    sizes = unit * 10.0 ** rng.uniform(-1, 1, _RANDOM)
    starts += [_Start("random", size * rng.standard_normal((d, d))) for size in sizes]
    others = rng.integers(0, T, (8, n))
    if data.mask is not None:
        seen = np.take_along_axis(data.mask.numpy()[None].repeat(8, 0), others[..., None], -1)
        others = np.where(seen[..., 0], others, np.asarray(selection))
    found = am.solve(am.token_problem(data.X, data.z, others, data.mask))
    feasible = [j for j in range(8) if bool(found.optimal[j])
                and others[j].tolist() != np.asarray(selection).tolist()]  # fmt: skip
    far = 10.0 ** rng.uniform(0.3, 1.3, _HOSTILE)
    hostile = zip(far, found.W[feasible].numpy(), strict=False)
    return starts + [_Start("hostile", size * W) for size, W in hostile]


def _compared(group: Group, rng: np.random.Generator) -> list[Case]:
    keep = _untied(group)
    if not keep:
        return []
    data = group.data()[keep]
    prediction = am.predict(data, loss=str(rng.choice(_LOSSES)), steps=1)
    places, starts = [], []
    for j in range(len(keep)):
        if prediction.verdict[j] == am.Verdict.GUARANTEED:
            own = _starts(data[j], prediction.selection[j], rng)
            places += [j] * len(own)
            starts += own
    if not places:
        return []
    found = _trained(data[places], prediction[places], np.stack([start.W for start in starts]))
    cases = []
    for j, start, (answer, about) in zip(places, starts, found, strict=True):
        arrays = group.arrays(keep[j]) | {"init": start.W}
        text = f"from a {start.name} start: {about} ({prediction.loss})"
        cases.append(Case(answer, group.family, group.adversarial, text, arrays))
    return cases


def _trained(data: am.AttentionData, prediction: am.Prediction, W: Any) -> list[tuple[Answer, str]]:
    """Train until the selections are made; before calling one wrong, finer and much longer."""
    unit = prediction.solution.value.numpy()
    unit = np.where(np.isfinite(unit) & (unit > 0), unit, 1.0)
    lr = 0.05 * unit + np.linalg.norm(W, axis=(-2, -1)) / 100.0
    open_ones, found = list(range(len(W))), [(Answer.RIGHT, "")] * len(W)
    for steps, length in _ATTEMPTS:
        rates = torch.from_numpy(lr[open_ones] * length)
        run = am.train(data[open_ones], lr=rates, steps=steps, record=steps // _RECORDS,
                       init=W[open_ones], loss=prediction.loss)  # fmt: skip
        ended, chosen = run.selection[-1], prediction.selection[open_ones]
        missed = (ended != chosen).any(-1).nonzero()[:, 0].tolist()
        # With steps that are too long, a selection comes and goes.
        comes = (run.selection[_RECORDS // 2 :] == chosen).all(-1).any(0)
        for j in missed:
            sure = float(run.probability[-1][j])
            about = f"{ended[j].tolist()}, guaranteed {chosen[j].tolist()}, probability {sure:.6f}"
            wrong = sure > _SETTLED and not bool(comes[j])
            found[open_ones[j]] = (Answer.WRONG if wrong else Answer.UNDECIDED, about)
        for j in set(range(len(open_ones))) - set(missed):
            found[open_ones[j]] = (Answer.RIGHT, "")
        open_ones = [open_ones[j] for j in missed]
        if not open_ones:
            break
    return found
