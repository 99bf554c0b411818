"""Trained embeddings (paper D) against plain loops with 60 digits and exact margins."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from mpmath import mp, mpf

import attnmargin as am
from tests.hunt.answers import Answer, Case
from tests.hunt.generators import seeded
from tests.hunt.oracle_exact import Shortest, exact_rows, shortest_point
from tests.hunt.oracle_training import DIGITS, EPS, precise

_FAMILIES = {"gaussian": False, "integers": True, "offsets": True, "scales": True, "large p": True}


class Sample:
    """A small vocabulary with sequences of any length."""

    def __init__(self, rng: np.random.Generator, family: str) -> None:
        S, d, n = (int(x) for x in rng.integers([2, 1, 1], [6, 4, 5]))
        self.family, self.adversarial = family, _FAMILIES[family]
        self.E, self.p, self.v = (rng.standard_normal(shape) for shape in ((S, d), d, d))
        if family == "integers":
            self.E, self.p, self.v = (np.round(x) for x in (self.E, self.p, self.v))
        elif family == "offsets":
            self.E += rng.standard_normal(d) * 10.0 ** rng.integers(2, 7)
        elif family == "scales":
            self.E *= 10.0 ** rng.uniform(-6, 6, (S, 1))
        elif family == "large p":
            self.p *= 10.0 ** rng.uniform(1, 4)
        self.rows = [rng.integers(0, S, int(rng.integers(1, 5))).tolist() for _ in range(n)]
        self.y = rng.choice([-1.0, 1.0], n)

    def model(self) -> am.embeddings.EmbeddingModel:
        """The model of the library."""
        return am.embeddings.EmbeddingModel(self.E, self.p, self.v, self.rows, self.y)

    def arrays(self) -> dict[str, Any]:
        """Everything, padded with −1."""
        T = max(map(len, self.rows))
        rows = np.array([row + [-1] * (T - len(row)) for row in self.rows])
        return {"E": self.E, "p": self.p, "v": self.v, "y": self.y, "sequences": rows}


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per data set and question."""
    k = 0
    while True:
        for family in _FAMILIES:
            sample = Sample(seeded(seed, "embeddings", k), family)
            checks = (_counts, _gradients, _margin, _others)
            yield [_asked(check, sample) for check in checks]
            k += 1


def _asked(check: Any, sample: Sample) -> Case:
    try:
        about = check(sample)
    except Exception as error:
        about = f"{type(error).__name__}: {error}"
    answer = Answer.WRONG if about else Answer.RIGHT
    if about.startswith("undecided"):
        answer = Answer.UNDECIDED
    return Case(answer, sample.family, sample.adversarial, about, sample.arrays())


def _counts(sample: Sample) -> str:
    """Signed frequencies and kinds of tokens."""
    S, model = len(sample.E), sample.model()
    found = model.statistics()
    alpha, counts = [Fraction(0)] * S, np.zeros((2, S), dtype=int)
    for row, y in zip(sample.rows, sample.y, strict=True):
        for s in row:
            counts[int(y < 0), s] += 1
            alpha[s] += Fraction(int(y), len(row) * len(sample.rows))
    if not np.array_equal(np.stack((found.positive, found.negative)), counts):
        return "occurrences"
    if np.abs(model.alpha.numpy() - [float(a) for a in alpha]).max() > 1e-14:
        return "alpha"
    words = [_kind(int(a), int(b)) for a, b in counts.T]
    return "" if found.kind.tolist() == words else f"kinds {found.kind.tolist()}"


def _kind(positive: int, negative: int) -> str:
    if positive + negative == 0:
        return "unseen"
    if positive == 0 or negative == 0:
        return "completely positive" if positive else "completely negative"
    if positive == negative:
        return "irrelevant"
    return "positive" if positive > negative else "negative"


def _gradients(sample: Sample) -> str:
    """Output, loss and both gradients (Lemma 7), token by token."""
    model = sample.model()
    of_E, of_p = model.gradients()
    with mp.workdps(DIGITS):
        E, p, v = precise(sample.E), precise(sample.p), precise(sample.v)
        G, g, loss, doubt = precise(np.zeros(E.shape)), precise(np.zeros(len(p))), mpf(0), EPS
        size_G, size_g, floor = mpf(0), mpf(0), mpf(0)
        for row, y in zip(sample.rows, sample.y, strict=True):
            logits, gamma = E[row] @ p, E[row] @ v
            weight = np.array([mp.exp(a - max(logits)) for a in logits], dtype=object)
            q = weight / sum(weight)
            f = q @ gamma
            pull = -mpf(float(y)) / (1 + mp.exp(mpf(float(y)) * f)) / len(sample.rows)
            loss += mp.log1p(mp.exp(-mpf(float(y)) * f)) / len(sample.rows)
            near = E[row] - E[row[0]]
            doubt = max(doubt, EPS * float(1 + abs(f) + sum(abs(x) for x in (near * p).ravel())))
            # f rounds the scores: where attention saturates, that is what is left of γ − f
            spread = max(abs(x) for x in gamma - gamma[0])
            floor += 1e3 * EPS * abs(pull) * spread * max(abs(x) for x in near.ravel()) + 1e-14
            for s, share, score in zip(row, q, gamma, strict=True):
                away = sum(x * (score - other) for x, other in zip(q, gamma, strict=True))
                G[s] = G[s] + pull * share * (away * p + v)
                g = g + pull * share * away * (E[s] - E[row[0]])
                size_G += abs(pull * share) * (abs(away) * max(map(abs, p)) + max(map(abs, v)))
                size_g += abs(pull * share * away) * max(abs(x) for x in E[s] - E[row[0]])
        allowed = 1e-9 + 1e3 * doubt
        if abs(float(model.loss) - loss) > allowed * (1 + loss):
            return f"loss {float(model.loss)}, exactly {mp.nstr(loss, 12)}"
        if max(abs(x) for x in (G - precise(of_E)).ravel()) > allowed * size_G + 1e-290:
            return "gradient of E"
        error = max(abs(x) for x in g - precise(of_p))
        if error > allowed * size_g + floor + 1e-290:
            return f"gradient of p is off by {float(error / (size_g or 1)):.1e}"
    return ""


def _important(sample: Sample) -> list[list[bool]]:
    """Mark every copy of the first token of each sequence."""
    return [[s == row[0] for s in row] for row in sample.rows]


def exact_margin(sample: Sample, chosen: list[list[bool]]) -> Shortest | None:
    """The exact solution of (9); None if infeasible."""
    left, tied = [], []
    E = [[Fraction(float(x)) for x in row] for row in sample.E]
    for row, marks in zip(sample.rows, chosen, strict=True):
        own = row[marks.index(True)]
        for s, mark in zip(row, marks, strict=True):
            if s != own:
                left.append([a - b for a, b in zip(E[own], E[s], strict=True)])
                tied.append(mark)
            elif not mark:
                return None
    if not left:
        zero = [Fraction(0)] * sample.E.shape[1]
        return Shortest(zero, [], [])
    equality = np.array(tied)
    rows = exact_rows(np.array(left, dtype=object), np.ones((len(left), 1)),
                      (~equality).astype(float), equality)  # fmt: skip
    return shortest_point(rows)


def _padded(sample: Sample, marks: list[list[bool]]) -> Any:
    T = max(map(len, sample.rows))
    return np.array([[*row, *([False] * (T - len(row)))] for row in marks])


def _margin(sample: Sample) -> str:
    """The shortest p̂ that selects the important tokens."""
    chosen = _important(sample)
    exact = exact_margin(sample, chosen)
    solution = sample.model().max_margin(_padded(sample, chosen))
    if solution.status == am.Status.INACCURATE:
        return "undecided: inaccurate"
    if (exact is None) != (solution.status == am.Status.INFEASIBLE):
        return f"{solution.status}, exactly {'in' if exact is None else ''}feasible"
    if exact is None:
        return ""
    p = np.array([float(x) for x in exact.w])
    error = np.abs(solution.vector.numpy() - p).max()
    return "" if error <= 1e-6 * np.abs(p).max() else f"p̂ is off by {error:.1e}"


def _others(sample: Sample) -> str:
    """The least norm of selections with more tokens (Lemma 19), by all subsets."""
    own = _important(sample)
    free = [(i, t) for i, row in enumerate(own) for t, mark in enumerate(row) if not mark]
    if not 0 < len(free) <= 5:
        return ""
    least = float("inf")
    for size in range(1, len(free) + 1):
        for extra in combinations(free, size):
            marks = [[m or (i, t) in extra for t, m in enumerate(row)] for i, row in enumerate(own)]
            marks = [
                [any(m and s == other for m, other in zip(line, row, strict=True)) for s in row]
                for line, row in zip(marks, sample.rows, strict=True)
            ]
            found = exact_margin(sample, marks)
            if found is not None and any(found.w):
                least = min(least, float(sum(x * x for x in found.w)) ** 0.5)
    said = am.embeddings.other_selections(sample.model(), _padded(sample, own))
    if np.isnan(said):
        return "undecided: an inaccurate one"
    same = said == least or abs(said - least) <= 1e-8 * least
    return "" if same else f"other selections: {said}, exactly {least}"
