"""What is missing for a guarantee, in words."""

import torch
from torch import Tensor

from attnmargin.attention.score import scores, tied_tokens
from attnmargin.base.places import sequence_words
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.implied import implied_norm
from attnmargin.margin.norms import Frobenius
from attnmargin.prediction.course import Course
from attnmargin.prediction.ending import Ending
from attnmargin.selections.local_optimality import locality
from attnmargin.theory.guarantees.case import Case, build_case
from attnmargin.theory.guarantees.frame import Frame, Obstacle
from attnmargin.theory.guarantees.funnel import funnel_at
from attnmargin.theory.guarantees.proof import build_selected

# How far along W_mm a funnel is looked for: doublings of the length of W.
_DOUBLINGS = 24
_OBSTACLES = {
    Obstacle.NO_DIRECTION: "no weights are known that select these tokens alone",
    Obstacle.DOUBTFUL: "rounding hides which tokens support this direction",
    Obstacle.DEPENDENT: "its support tokens depend on each other, which Theorem B excludes",
    Obstacle.SUPPORT: "a support token does not score lower, and pulls it away",
    Obstacle.LEVEL: "a token that does not score lower stands exactly at the margin",
    Obstacle.LOSS: "the slope of the loss vanishes, or its curvature is not known",
}


def missing_words(data: AttentionData, course: Course, ending: Ending) -> str:
    """Say what keeps a settled run of one instance from being proved."""
    if course.parameter == "KQ":
        kept = "; gradient flow from here keeps these tokens for ever" if bool(ending.flow) else ""
        return f"the direction of K Qᵀ is not determined by what is proved{kept}"
    if course.p != 2.0:
        kept = "; mirror flow from here is proved to end in them" if bool(ending.flow) else ""
        return f"no theorem covers steps of mirror descent{kept}"
    case = build_case(data, course.loss)
    chosen = ending.selection.reshape(case.best.shape)
    frame = build_selected(case, chosen)
    obstacle = Obstacle(int(frame.obstacle))
    if obstacle != Obstacle.NONE:
        return _OBSTACLES[obstacle]
    W = ending.W.reshape(1, data.d, data.d)
    step = course.lr.reshape(1)
    if not course.normalize:
        kept = "; gradient flow from here is proved to stay" if bool(ending.flow) else ""
        return f"plain steps of this rate are not covered here{kept}"
    needed = _needed(frame, W, step)
    if bool(ending.flow) and needed is None:
        return f"steps of {float(step):g} are too long for the proof; gradient flow is covered"
    higher = _nearest_higher(case, frame)
    size = "" if needed is None else f"; a norm of about {needed:,.0f} is needed"
    if higher is None:
        return f"the weights, of norm {float(W.norm()):,.0f}, are too short{size}"
    where, token, slack = higher
    return f"token {token} of {where} scores higher and misses the margin by {slack:.2g} only{size}"


def _needed(frame: Frame, W: Tensor, step: Tensor) -> float | None:
    """Find about which norm the funnel exists at, if W grows along its direction."""
    direction = frame.solution.W / Frobenius().value(frame.solution.W)
    for k in range(_DOUBLINGS):
        further = W + (2.0 ** (k / 2) - 1.0) * W.norm() * direction
        if bool(funnel_at(frame, further, step, measured=False).proved):
            return float(further.norm())
    return None


def _nearest_higher(case: Case, frame: Frame) -> tuple[str, int, float] | None:
    """Find the higher token next to the margin: its sequence, its number, and its slack."""
    high = frame.problem.mask & (frame.gap <= 0)
    if not bool(high.any()):
        return None
    slack = frame.delta.where(high, torch.inf)[0]
    row = int(slack.argmin())
    token = int(frame.problem.names.other.expand(frame.gap.shape)[0, row])
    place = torch.unravel_index(frame.sequence[0, row], case.best.shape[1:])
    return sequence_words(*(int(x) for x in place)), token, float(slack[row])


def undecided_words(data: AttentionData, course: Course, ending: Ending) -> str:
    """Say why the end of a run of one instance is not known."""
    steps, merged = int(ending.steps), merge_copies(data).data
    tied = tied_tokens(merged)
    if bool(tied.any()):
        place = tied.nonzero()[0].tolist()
        gamma = scores(merged)[tuple(place)]
        tokens = (gamma >= gamma.amax()).nonzero().flatten().tolist()
        where = sequence_words(*place)
        case = build_case(data, course.loss)
        logits = case.logits(ending.W.reshape(1, data.d, data.d))
        share = torch.softmax(logits, -1).reshape(tied.shape + logits.shape[-1:])[tuple(place)]
        shares = ", ".join(f"{float(share[t]):.2f}" for t in tokens)
        return (
            f"tokens {tokens} of {where} tie for the best score, and may share its attention for "
            f"ever; after {steps:,} steps they have {shares} of it"
        )
    if bool(ending.resting):
        length = float(ending.W.norm())
        return f"the weights rest at a finite point, of norm {length:.3g}: they select nothing"
    if bool(ending.unsettled):
        return f"the selection changed at step {int(ending.settled):,} of {steps:,}; train longer"
    if bool(ending.unclear):
        return (
            f"after {steps:,} steps some selected token has {float(ending.share):.2g} of its "
            "attention only; train longer"
        )
    if not bool(locality(merged, ending.selection, implied_norm(course.parameter, course.p)).local):
        return "the run is with tokens that are not locally optimal; train longer"
    return (
        f"the run selects these tokens since step {int(ending.settled):,}, but the slope of the "
        "loss may vanish at their scores (Assumption A fails), and no theorem knows the direction"
    )
