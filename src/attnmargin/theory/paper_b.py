"""Paper B, "Optimizing Attention with Mirror Descent", Section 3.1, as checks."""

import math

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.margin.norms import Lp
from attnmargin.theory import labels
from attnmargin.theory.check import Check, Outcome, number
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_a import regular, under_a
from attnmargin.theory.paper_a_local import in_no_cone, locally, started
from attnmargin.training.rates import lipschitz

_START = "about a start in the cone of a locally optimal selection, and steps that are short enough"
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
    return facts.chosen.mu_0


def _from_cone(
    facts: Facts, name: str, meaning: str, numbers: dict[str, Tensor], least: float = 0.0
) -> Check:
    """Check a theorem about a start in the cone of Definition 5, beyond R and ``least``.

    By Lemma 17, a start in the thinner cone μ₀/3 stays in the cone μ₀. From W(0) the theorem holds
    if W(0) is in there. It fails if W(0) is in no cone of any μ < 1; in between it is not decided.
    """
    if facts.parameter == "KQ":
        return Check("B", name, meaning, Outcome.UNDECIDABLE, {}, _NO_KQ)
    own, W = facts.chosen, facts.start.W
    numbers = {
        "μ₀, radius of the cone": own.mu_0,
        "μ′ = μ₀/3, radius for the start": own.mu_0 / 3.0,
        "R_δ of Lemma 10": own.R_delta,
        "R of the cone": own.radius_b.clamp_min(least),
        **numbers,
    }
    if W is None:
        return Check("B", name, meaning, locally(facts), numbers, _START)
    away, size = own.divergence(W), Lp(facts.p).value(W)
    inside = (away <= own.mu_0 / 3.0) & (size >= own.radius_b) & (size > least)
    answer = locally(facts, inside, in_no_cone(facts, away))
    return Check("B", name, meaning, answer, numbers | started(facts, inside, away), _START)


def theorem_2_b(facts: Facts) -> Check:
    """Check Theorem 2: the norm diverges."""
    meaning = "Mirror descent that begins in the cone grows without bound."
    return _from_cone(facts, "Theorem 2", meaning, {})


def theorem_3(facts: Facts) -> Check:
    """Check Theorem 3: directional convergence of ℓp mirror descent."""
    meaning = "Mirror descent that begins in the cone turns to the predicted direction."
    least = {"R of the cone is above": number(math.e**2)}
    return _from_cone(facts, "Theorem 3", meaning, least, math.e**2)


def theorem_4(facts: Facts) -> Check:
    """Check Theorem 4: the rate, log log k / log k or similar."""
    meaning = "Its divergence from the direction falls like a power of 1/log k after k steps."
    power = 1.0 if facts.p >= 2.0 else facts.p - 1.0
    rate = {"power of 1/log k": number(power)}
    return _from_cone(facts, "Theorem 4", meaning, rate, math.e**2)


def lemma_17(facts: Facts) -> Check:
    """Check Lemma 17 for μ = μ₀: from the cone μ₀/3 beyond R_μ, no step leaves the cone μ₀."""
    meaning = "Mirror descent that begins in a thinner cone never leaves a wider one."
    R = {"R_μ, for step sizes up to 1": facts.chosen.R_mu}
    return _from_cone(facts, "Lemma 17", meaning, R)


def remark_1(facts: Facts) -> Check:
    """Check Remark 1 at the start: ``ψ − η L`` is convex there for small η.

    ``∇²ψ = (p − 1) diag |w|^{p−2}`` and ``∇²L ≤ L_W``, so that ``η ≤ (p − 1) min |w|^{p−2} / L_W``
    suffices. For p > 2 this is zero where an entry of W is zero (docs/errata.md).
    """
    name, meaning = "Remark 1", "Steps up to this size are short enough at the start."
    if facts.parameter == "KQ":
        return Check("B", name, meaning, Outcome.UNDECIDABLE, {}, _NO_KQ)
    W, p, v = facts.start.W, facts.p, facts.data.v
    if W is None and p != 2.0:
        return Check("B", name, meaning, Outcome.UNDECIDABLE, {}, "it depends on the weights")
    assert v is not None
    flat_v = v.expand(*facts.data.batch_shape, facts.data.d).reshape(-1, facts.data.d)
    try:
        L = lipschitz(facts.goal, flat_v).reshape(facts.data.batch_shape)
    except InputError as error:
        return Check("B", name, meaning, Outcome.UNDECIDABLE, {}, str(error))
    bend = torch.ones_like(L)
    if W is not None:
        bend = ((p - 1.0) * W.abs() ** (p - 2.0)).flatten(-2).amin(-1)
    # Where the bound is zero, a step may still be short enough in the directions that matter; where
    # it is infinite, as at W(0) = 0 for p < 2, it says nothing of the end of the step.
    usable = (bend > 0) & torch.isfinite(bend)
    smooth = under_a(facts, usable, torch.zeros_like(usable))
    return Check("B", name, meaning, smooth, {"η": bend / L}, "later steps have their own bound")


def assumption_b(facts: Facts) -> Check:
    """Check Assumption B for the given selection, or the optimal tokens."""
    if facts.data.z.ndim == facts.data.X.ndim:
        return labels.silent(_ONE_QUERY)[0]
    selection = facts.best if facts.selection is None else facts.selection
    assert isinstance(selection, Tensor)
    return labels.assumption_b(labels.label_facts(facts.data, selection, facts.p))


def theorem_5(facts: Facts) -> Check:
    """Check Theorem 5, joint paths of head and weights, for the selection given.

    Without one it asks for any tokens with Assumption B, and tries those of largest label margin.
    """
    if facts.data.z.ndim == facts.data.X.ndim or facts.parameter == "KQ":
        return labels.silent(_NO_KQ if facts.parameter == "KQ" else _ONE_QUERY)[1]
    if facts.goal.loss.name != "logistic":
        return labels.silent("about the logistic loss")[1]
    selection, known = facts.selection, None
    if selection is None:
        selection, known = labels.widest_selection(facts.data, facts.p)
    assert isinstance(selection, Tensor)
    return labels.theorem_5(labels.label_facts(facts.data, selection, facts.p), known)


_ONE_QUERY = "asked for one query per sequence"
