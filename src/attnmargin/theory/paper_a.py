"""Paper A, "Transformers as Support Vector Machines": Sections 2 to 4, as checks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.base.errors import InputError
from attnmargin.margin.solution import Solution
from attnmargin.theory.check import Check, Outcome, decided, fails, holds, number, outcome
from attnmargin.theory.facts import Facts
from attnmargin.training.rates import lipschitz

# Name of the number of Theorem 6: how long its first step must be.
FIRST_STEP = "length of a first step that suffices"
# Average margin below which the paper's experiments count Assumption B.1 as satisfied.
AVERAGE_MARGIN = 1.1
_OF_W = "about gradient descent on W"
_NOT_LP = "about the Frobenius and the nuclear norm"


def theorem_1(facts: Facts) -> Check:
    """Check ``d ≥ max(T − 1, n)``, with the T tokens that a query sees at most."""
    needed = (facts.seen - 1).clamp_min(facts.queries)
    return Check(
        "A",
        "Theorem 1",
        "Tokens are wide enough for almost all data to have a separating direction.",
        outcome(facts.data.d >= needed),
        {"token width d": number(facts.data.d), "needed, max(T − 1, n)": needed.double()},
        "it speaks of almost all data; the next row is about these data",
    )


def separable(facts: Facts) -> Check:
    """Check that the SVM of the optimal tokens has a solution."""
    return Check(
        "A",
        "(Att-SVM) is feasible",
        "Some weights put the best token of every sequence above all others.",
        outcome(facts.feasible, facts.settled),
        {"margin": facts.solution.margin},
    )


def assumption_a(facts: Facts) -> Check:
    """Check that the loss falls, with bounded and Lipschitz slope, from least to best score.

    Where its slope vanishes, as that of (1 − u)² does at the score one, it does not fall: there the
    pull of a sequence shrinks faster than its softmax saturates, and its margin has another share.
    """
    low, high = facts.interval
    loss = facts.goal.loss
    numbers: dict[str, Tensor] = {}
    try:
        M0, M1 = loss.constants(torch.maximum(low.abs(), high.abs()))
        numbers = {"M₁, largest slope": M1, "M₀, its largest rate of change": M0}
    except InputError:
        pass  # the constants of the loss −log u depend on how near to zero u may come
    return Check(
        "A",
        "Assumption A",
        "The loss falls with the score, with a slope that is bounded and does not jump.",
        falling_between(loss, low, high, facts.rounding),
        numbers,
        f"loss {loss.name}, on the interval of the scores",
    )


def falling_between(loss: Loss, low: Tensor, high: Tensor, rounding: Tensor) -> Any:
    """Decide whether a loss falls from score low to high, which rounding can move, ``(*B,)``.

    Returns an outcome, or an array of them.
    """
    falling = _falls(loss, low) & _falls(loss, high) & (loss.value(low) >= loss.value(high))
    near = [_falls(loss, u + sign * rounding) for u in (low, high) for sign in (-1.0, 1.0)]
    safe = near[0] & near[1] & near[2] & near[3]
    broken = ~(near[0] | near[1]) | ~(near[2] | near[3]) | (loss.value(low) < loss.value(high))
    # A score exactly where the slope vanishes or is infinite is meant to be there.
    exact = ~torch.isfinite(loss.log_slope(low)) | ~torch.isfinite(loss.log_slope(high))
    return outcome(falling, torch.where(falling, safe, broken | exact))


def _falls(loss: Loss, u: Tensor) -> Tensor:
    return torch.isfinite(loss.log_slope(u)) & (loss.falls(u) > 0)


def under_a(facts: Facts, rest: Tensor, known: Tensor | None = None) -> Any:
    """Decide what needs Assumption A and the rest, bool ``(*B,)``, decided where known."""
    a = assumption_a(facts)
    both = holds(a) & rest
    refuted = ~rest if known is None else ~rest & known
    return outcome(both, both | refuted | fails(a.outcome))


def lemma_1(facts: Facts) -> Check:
    """Check Lemma 1: the rank is at most n."""
    rank = facts.solution.rank
    return Check(
        "A",
        "Lemma 1",
        "The predicted direction has a rank of at most the number of sequences.",
        outcome(rank <= facts.queries, facts.solution.optimal)
        if facts.of_A
        else Outcome.UNDECIDABLE,
        {
            "rank": rank.double().where(facts.solution.optimal, torch.nan),
            "sequences n": number(facts.queries),
        },
        "" if facts.of_A else _NOT_LP,
    )


def lemma_2(facts: Facts) -> Check:
    """Check Lemma 2, first half: every W has a loss above that of the optimal tokens."""
    return Check(
        "A",
        "Lemma 2",
        "Choosing the best token of every sequence has less loss than any weights reach.",
        under_a(facts, facts.varies, facts.constant),
        {"least loss": _least_loss(facts)},
    )


def lemma_2_limit(facts: Facts) -> Check:
    """Check Lemma 2, second half: weights that separate optimal tokens come near that loss."""
    known = facts.feasible | (facts.solution.infeasible & facts.unique)
    return Check(
        "A",
        "Lemma 2, the limit",
        "Weights of growing size come as near as you like to that least loss.",
        under_a(facts, facts.feasible, known),
        {"least loss": _least_loss(facts)},
        "it needs optimal tokens that some W separates",
    )


def _least_loss(facts: Facts) -> Tensor:
    # A sequence of which nothing is visible has the output zero.
    best = facts.goal.loss.value(facts.gamma.amax(-1).nan_to_num(neginf=0.0))
    return best.mean(facts.inner(best)) if facts.inner(best) else best


def thin(facts: Facts) -> bool:
    """Whether K and Q have fewer columns than W, so that its rank is limited."""
    return facts.parameter == "KQ" and facts.start.width < facts.data.d


def fits(facts: Facts, solution: Solution) -> Tensor:
    """Decide whether factors K and Q of the given width make a solution, bool ``(*B,)``."""
    if not thin(facts):
        return torch.ones_like(solution.feasible)
    return solution.optimal & (solution.rank <= facts.start.width)


def regular(facts: Facts) -> Any:
    """Decide what most theorems assume: Assumption A, unique optimal tokens and W_mm ≠ 0.

    With factors of width m < d, W_mm must have a rank of at most m; where this one has not, it is
    open whether another W has.
    """
    rest = facts.unique & facts.feasible & facts.choice & fits(facts, facts.solution)
    return under_a(facts, rest, facts.solution.infeasible | ~facts.unique | ~facts.choice)


def lemma_4(facts: Facts) -> Check:
    """Compute the Lipschitz constants of the gradients in W, K and Q.

    ``L_W`` of eq. (3), and ``L_K = ‖Q‖² L_W``, ``L_Q = ‖K‖² L_W`` at the factors of a start. The
    paper prints ‖Q‖ and ‖K‖, not squared (docs/errata.md).
    """
    v = facts.data.v
    assert v is not None
    flat_v = v.expand(*facts.data.batch_shape, facts.data.d).reshape(-1, facts.data.d)
    try:
        L = lipschitz(facts.goal, flat_v).reshape(facts.data.batch_shape)
    except InputError as error:
        return Check("A", "Lemma 4", _STEP, Outcome.UNDECIDABLE, {}, str(error))
    numbers = {"L_W, largest rate of change of the gradient": L, "step size 1/L_W": 1.0 / L}
    if facts.start.factors is not None:
        K, Q = (torch.linalg.matrix_norm(x, 2) ** 2 for x in facts.start.factors)
        numbers |= {"L_K = ‖Q‖² L_W": Q * L, "L_Q = ‖K‖² L_W": K * L}
    note = "" if facts.parameter == "W" else "L_K and L_Q are printed without squares"
    return Check("A", "Lemma 4", _STEP, assumption_a(facts).outcome, numbers, note)


_STEP = "The gradient changes at a bounded rate: short steps of descent never raise the loss."


def assumption_b1(facts: Facts) -> Check:
    """Check exactly that all tokens are support vectors."""
    rows, problem = facts.solution.support, facts.solution.problem
    tight = (rows | ~problem.mask).all(-1) & facts.feasible
    slack = (problem.mask & ~rows & ~facts.solution.doubtful).any(-1) & facts.feasible
    share = (rows & problem.mask).sum(-1) / problem.mask.sum(-1).clamp_min(1)
    return Check(
        "A",
        "Assumption B.1",
        "Every token that is not selected lies exactly one margin below the selected one.",
        outcome(facts.unique & tight, ~facts.unique | tight | slack | facts.solution.infeasible),
        {"share of support tokens": share.to(torch.float64)},
    )


def width_for_b1(facts: Facts) -> Check:
    """Check ``d ≥ (T + n) log(T + n)``, which Section 4.1 expects to suffice for B.1."""
    total = (facts.seen + facts.queries).double()
    needed = total * total.log()
    return Check(
        "A",
        "Assumption B.1, by width",
        "Tokens are so wide that, if drawn independently, all should be support tokens.",
        outcome(facts.data.d >= needed),
        {"token width d": number(facts.data.d), "(T + n) log(T + n)": needed},
        "posited for independent isotropic tokens, not proved; Assumption B.1 is about these data",
    )


def average_margin(facts: Facts) -> Check:
    """Check B.1 by the rule of the paper's figure 5."""
    average, exact = facts.margins.nanmean(-1), facts.solution.optimal
    return Check(
        "A",
        "Assumption B.1, by average margin",
        f"On average the others lie at most {AVERAGE_MARGIN} margins below the selected token.",
        outcome(exact & (average < AVERAGE_MARGIN), exact | facts.solution.infeasible),
        {"average margin": average, "rule": number(AVERAGE_MARGIN)},
        "the rule of the paper's experiments, weaker than B.1 itself",
    )


def assumption_b2(facts: Facts) -> Check:
    """Check that the non-optimal tokens of each sequence have equal scores."""
    equal = facts.spread == 0
    known = equal | (facts.spread > facts.rounding) | ~facts.unique
    return Check(
        "A",
        "Assumption B.2",
        "In every sequence all tokens but the best have the same score.",
        outcome(facts.unique & equal, known),
        {"largest difference of such scores": facts.spread, "smallest score gap": facts.gap},
    )


def theorem_3(facts: Facts) -> Check:
    """Check Theorem 3: there is no stationary point, and the norm diverges."""
    b1, b2 = assumption_b1(facts), assumption_b2(facts)
    known = facts.solution.infeasible | (decided(b1) & decided(b2)) | ~facts.choice
    return Check(
        "A",
        "Theorem 3",
        "Gradient descent never comes to rest: the weights grow without bound.",
        under_a(facts, facts.feasible & facts.choice & (holds(b1) | holds(b2)), known)
        if facts.on_W
        else Outcome.UNDECIDABLE,
        {},
        "it needs Assumption A, and B.1 or B.2" if facts.on_W else _OF_W,
    )


def theorem_3_by_queries(facts: Facts) -> Check:
    """Check by the queries alone that there is no stationary point: our own argument."""
    return Check(
        "A",
        "Theorem 3, by the queries",
        "The same, because label × query lies on one side of a plane for all sequences.",
        under_a(
            facts,
            facts.one_sided & facts.varies,
            (facts.side_known & ~facts.one_sided) | facts.constant,
        )
        if facts.on_W
        else Outcome.UNDECIDABLE,
        {},
        "not in the paper: ⟨∇L, v uᵀ⟩ < 0 for every W if y_i uᵀz_i > 0 for all i (docs/errata.md)"
        if facts.on_W
        else _OF_W,
    )


def theorem_4(facts: Facts) -> Check:
    """Check Theorem 4, global convergence: proved for one sequence, refuted for several."""
    return Check(
        "A",
        "Theorem 4",
        "From any start, gradient descent selects the best token of every sequence.",
        _equal_scores(facts) if facts.on_W else Outcome.UNDECIDABLE,
        {},
        "it needs A and B.2, and its proof holds for one sequence; with several, other selections "
        "and mixtures of tied tokens can be stable too (docs/errata.md)"
        if facts.on_W
        else _OF_W,
    )


def _equal_scores(facts: Facts) -> Any:
    """Decide Theorem 4: it fails without B.2, and if another selection is locally optimal."""
    b2 = assumption_b2(facts)
    single = under_a(
        facts,
        facts.feasible & facts.choice & holds(b2),
        facts.solution.infeasible | (facts.feasible & decided(b2)) | ~facts.choice,
    )
    printed = torch.as_tensor(np.asarray(single == Outcome.HOLDS))
    if facts.queries == 1 or not bool(printed.any()):
        return single
    return outcome(torch.zeros_like(printed), facts.several.where(printed, fails(single)))


def theorem_5(facts: Facts) -> Check:
    """Check approximate B.2; the theorem does not say how small δ must be."""
    exact = holds(assumption_b2(facts))
    equal = theorem_4(facts)
    refuted = fails(equal.outcome) & exact
    return Check(
        "A",
        "Theorem 5",
        "The same where the scores of the other tokens are nearly equal.",
        outcome(holds(equal), holds(equal) | refuted) if facts.on_W else Outcome.UNDECIDABLE,
        {"δ: largest difference of such scores": facts.spread},
        "how small δ must be is not said; for δ = 0 it is Theorem 4" if facts.on_W else _OF_W,
    )


def assumption_c(facts: Facts) -> Check:
    """Check that the first gradient step separates the optimal tokens."""
    return Check(
        "A",
        "Assumption C",
        "The first step of gradient descent from zero already puts the best tokens on top.",
        outcome(facts.unique & facts.first_separates, facts.first_known | ~facts.unique)
        if facts.on_W
        else Outcome.UNDECIDABLE,
        {"margin of the first step, as a share of the best": facts.first_margin}
        if facts.on_W
        else {},
        "" if facts.on_W else _OF_W,
    )


def theorem_6(facts: Facts) -> Check:
    """Check Theorem 6: global convergence from zero, after a first step that is long enough."""
    c = assumption_c(facts)
    refuted = fails(c.outcome) | facts.solution.infeasible | ~facts.choice
    numbers = {}
    if facts.on_W and facts.goal.loss.always_falls:
        numbers = {FIRST_STEP: facts.first_step}
    return Check(
        "A",
        "Theorem 6",
        "From zero, after one long step, gradient descent selects the best token everywhere.",
        under_a(facts, holds(c) & facts.feasible & facts.choice, refuted)
        if facts.on_W
        else Outcome.UNDECIDABLE,
        numbers,
        "it needs A and C; it prints a short first step, its proof takes a long one, and with "
        "short ones another locally optimal selection can win (docs/errata.md)"
        if facts.on_W
        else _OF_W,
    )
