"""What is missing for a guarantee, in words."""

import math

import torch

from attnmargin.attention.score import best_tokens, tied_tokens
from attnmargin.base.places import sequence_words
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.prediction.course import Course
from attnmargin.prediction.ending import Ending
from attnmargin.selections.local_optimality import locality
from attnmargin.theory.guarantees.case import Case, build_case
from attnmargin.theory.guarantees.frame import Frame, Obstacle
from attnmargin.theory.guarantees.proof import build_selected

_OBSTACLES = {
    Obstacle.NO_DIRECTION: "no weights are known that select these tokens alone",
    Obstacle.DOUBTFUL: "rounding hides which tokens support this direction",
    Obstacle.DEPENDENT: "its support tokens depend on each other, which Theorem B excludes",
    Obstacle.SUPPORT: "a support token does not score lower, and pulls it away",
    Obstacle.LEVEL: "a token that does not score lower stands exactly at the margin",
    Obstacle.LOSS: "the slope of the loss vanishes, or its curvature is not known",
}


def conjectured_words(data: AttentionData, course: Course, ending: Ending) -> str:
    """Say what a run of one instance should select, and what keeps that from being proved."""
    steps, onward = int(ending.steps), float(ending.onward)
    if not bool(ending.calm):
        flow = "gradient flow" if course.p == 2.0 else "mirror flow"
        return (
            f"after {steps:,} steps nothing has settled; followed on, in steps of 1/200 of the "
            f"norm, the weights select these tokens, and at norm {onward:,.0f} {flow} is "
            "proved to stay with them"
        )
    return (
        f"the run selects these tokens since step {int(ending.settled):,} of {steps:,}, and they "
        f"are locally optimal. Not proved: {_missing_words(data, course, ending)}"
    )


def _missing_words(data: AttentionData, course: Course, ending: Ending) -> str:
    """Say what keeps a settled run of one instance from being proved."""
    if course.settings is not None:
        known = course.implied
        return (
            f"no theorem covers this method on attention; the norm of the direction is "
            f"{known.evidence.value} ({known.source})"
        )
    if course.parameter == "KQ":
        kept = "; gradient flow from here keeps these tokens for ever" if bool(ending.flow) else ""
        return f"the direction of K Qᵀ is not determined by what is proved{kept}"
    if course.p != 2.0:
        return _missing_cone(course, ending)
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
    if bool(ending.flow):
        return f"steps of {float(step):g} are too long for the proof; gradient flow is covered"
    higher = _nearest_higher(case, frame)
    needed = float(ending.onward)
    size = f"; a norm of about {needed:,.0f} is needed" if math.isfinite(needed) else ""
    if higher is None:
        return f"the weights, of norm {float(W.norm()):,.0f}, are too short{size}"
    where, token, slack = higher
    return f"token {token} of {where} scores higher and misses the margin by {slack:.2g} only{size}"


def _missing_cone(course: Course, ending: Ending) -> str:
    """Say what keeps a settled run of mirror descent from being proved."""
    if bool(ending.flow):
        return f"{course.pace()} are too long for the proof here; mirror flow is covered"
    needed = float(ending.onward)
    size = f"; mirror flow is proved at norm {needed:,.0f}" if math.isfinite(needed) else ""
    norm = float(ending.W.norm())
    return f"at norm {norm:,.0f} the weights are not close enough to their direction{size}"


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
    if bool(tied_tokens(merged).any()):
        return shares_of_ties(data, course, ending)
    if bool(ending.parted):
        return (
            f"the run selects these tokens since step {int(ending.settled):,} of {steps:,}, but "
            "followed on, in steps of 1/200 of the norm, the weights go over to others; train "
            "longer"
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
    if not bool(locality(merged, ending.selection, course.norm).local):
        return "the run is with tokens that are not locally optimal; train longer"
    return (
        f"the run selects these tokens since step {int(ending.settled):,}, but the slope of the "
        "loss may vanish at their scores (Assumption A fails), and no theorem knows the direction"
    )


def shares_of_ties(data: AttentionData, course: Course, ending: Ending) -> str:
    """Say how the first tied tokens of one instance share the attention so far."""
    sets = best_tokens(merge_copies(data).data)
    place = tuple((sets.sum(-1) > 1).nonzero()[0].tolist())
    tokens = sets[place].nonzero().flatten().tolist()
    case = build_case(data, course.loss)
    logits = case.logits(ending.W.reshape(1, data.d, data.d))
    share = torch.softmax(logits, -1).reshape(sets.shape)[place]
    shares = ", ".join(f"{float(share[t]):.2f}" for t in tokens)
    return (
        f"tokens {tokens} of {sequence_words(*place)} tie for the best score, and may share its "
        f"attention for ever; after {int(ending.steps):,} steps they have {shares} of it"
    )
