"""Paper B, "Optimizing Attention with Mirror Descent", as checks."""

import math

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import scores
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import Lp
from attnmargin.selections.local_optimality import label_margin, locality
from attnmargin.theory.check import Check, Outcome, fails, number, outcome
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import regular
from attnmargin.theory.paper_a_local import largest_pair, slack

_START = "about a start in the cone; zero is not in it, and how large R must be is not said"
# Exchanges of one token, those with the largest label margins, that are tried.
_MOST_SWAPS = 32
_NO_KQ = "about ℓp mirror descent on W"


def theorem_1(facts: Facts) -> Check:
    """Check Theorem 1: ℓp regularisation paths."""
    if facts.parameter == "KQ":
        return Check("B", "Theorem 1", _PATHS, Outcome.UNDECIDABLE, {}, _NO_KQ)
    note = "about regularisation paths, not about descent"
    numbers = {"smallest score gap": facts.gap}
    return Check("B", "Theorem 1", _PATHS, regular(facts), numbers, note)


_PATHS = "The best weights of a given ℓp size turn to the predicted direction as it grows."


def radius(facts: Facts) -> Tensor:
    """Compute ``μ₀`` of eq. (9), ``(*B,)``: the cone in which the paper's lemmas hold.

    The printed A has the norm ‖·‖_{p−1, p/(p−1)}; the proof of Lemma 9 uses the dual norm, with
    p/(p − 1) twice, and so does this.
    """
    p, d = facts.p, facts.data.d
    delta = slack(facts).clamp_max(0.25)
    A = (largest_pair(facts, p / (p - 1.0)) * Lp(p).value(facts.solution.W)).clamp_min(1.0)
    if p >= 2.0:
        return (delta / (8.0 * A)) ** p / p
    return (delta * (p - 1.0) / (4.0 * A * d ** (2.0 / p - 1.0))) ** 2 / p


def _from_cone(facts: Facts, name: str, meaning: str, numbers: dict[str, Tensor]) -> Check:
    """Check a theorem about a start in the cone of Definition 5."""
    if facts.parameter == "KQ":
        return Check("B", name, meaning, Outcome.UNDECIDABLE, {}, _NO_KQ)
    refuted = fails(regular(facts))
    never = outcome(torch.zeros_like(refuted), refuted)
    return Check("B", name, meaning, never, numbers, _START)


def theorem_2_b(facts: Facts) -> Check:
    """Check Theorem 2: the norm diverges."""
    meaning = "Mirror descent that begins in the cone grows without bound."
    return _from_cone(facts, "Theorem 2", meaning, {"μ₀, radius of the cone": radius(facts)})


def theorem_3(facts: Facts) -> Check:
    """Check Theorem 3: directional convergence of ℓp mirror descent."""
    meaning = "Mirror descent that begins in the cone turns to the predicted direction."
    least = number(math.e**2)
    numbers = {"μ₀, radius of the cone": radius(facts), "R of the cone is above": least}
    return _from_cone(facts, "Theorem 3", meaning, numbers)


def theorem_4(facts: Facts) -> Check:
    """Check Theorem 4: the rate, log log k / log k or similar."""
    meaning = "Its divergence from the direction falls like a power of 1/log k after k steps."
    power = 1.0 if facts.p >= 2.0 else facts.p - 1.0
    return _from_cone(facts, "Theorem 4", meaning, {"power of 1/log k": number(power)})


def assumption_b(facts: Facts) -> Check:
    """Check that the label margin shrinks when attention leaves the selected tokens."""
    if facts.data.z.ndim == facts.data.X.ndim:
        note = "asked for one query per sequence"
        return Check("B", "Assumption B", _LABELS, Outcome.UNDECIDABLE, {}, note)
    own = label_margin(facts.data, facts.best, facts.p)
    other = _best_swap(facts)
    refuted = (own <= 0) | (other >= own)
    return Check(
        "B",
        "Assumption B",
        _LABELS,
        outcome(torch.zeros_like(refuted), refuted),
        {"label margin": own, "largest after exchanging one token": other},
        "asked for all weights; refuted where exchanging one token does not lower the margin",
    )


_LABELS = "Attention to any other token lowers the margin by which the labels are told apart."


def _best_swap(facts: Facts) -> Tensor:
    """Find the largest label margin after exchanging the token of one sequence, ``(*B,)``."""
    data, batch = facts.data, facts.data.batch_shape
    members = list(np.ndindex(*batch))
    best = [
        _best_swap_of(data[index] if index else data, facts.best[index], facts.p)
        for index in members
    ]
    return torch.stack(best).reshape(batch) if best else data.X.new_zeros(batch)


def _best_swap_of(data: AttentionData, best: Tensor, p: float) -> Tensor:
    """Find it for one instance."""
    sequence, token = torch.isfinite(scores(data)).nonzero().T
    sequence, token = (x[token != best[sequence]] for x in (sequence, token))
    if len(token) == 0:
        return data.X.new_zeros(())
    swapped = best.repeat(len(token), 1)
    swapped[torch.arange(len(token)), sequence] = token
    margin = label_margin(data, swapped, p)
    first = margin.topk(min(_MOST_SWAPS, len(margin))).indices
    possible = locality(data, swapped[first]).feasible  # some W gives them nearly all attention
    return margin[first].where(possible, 0.0).amax()


def theorem_5(facts: Facts) -> Check:
    """Check Theorem 5: joint paths of head and weights."""
    return Check(
        "B",
        "Theorem 5",
        "If head and weights are chosen together, both turn to their margins' directions.",
        Outcome.UNDECIDABLE,
        {},
        "it needs some tokens with Assumption B, and speaks of a head that is not fixed",
    )
