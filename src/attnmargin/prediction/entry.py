"""The main job: predict what a run of attention will select, and prove it."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from attnmargin.attention.heads import Head, HeadLike, ScoreHead, as_head
from attnmargin.attention.losses import Loss
from attnmargin.attention.score import best_tokens
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind, check_whole
from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import finite_problem, set_problem, token_problem
from attnmargin.margin.implied import check_parameter
from attnmargin.margin.norms import Norm, check_power
from attnmargin.margin.solution import Solution
from attnmargin.prediction.course import Course, plan
from attnmargin.prediction.ending import Ending, follow
from attnmargin.prediction.everywhere import from_every_start
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.starts import many_starts
from attnmargin.prediction.verdict import Verdict
from attnmargin.selections.composition import optimal_composition, unique_composition
from attnmargin.selections.local_optimality import locality
from attnmargin.selections.search import check_limit
from attnmargin.solvers.entry import solve
from attnmargin.theory.check import Check, holds
from attnmargin.theory.facts import PREDICTED, Facts
from attnmargin.theory.paper_a import assumption_a
from attnmargin.theory.sets import set_checks
from attnmargin.training.methods import Method


@one_thread
def predict(
    data: AttentionData,
    parameter: str = "W",
    p: float = 2.0,
    *,
    init: Any = None,
    lr: Array = 0.1,
    normalize: bool = True,
    method: Method | None = None,
    norm: str | float | Norm | None = None,
    steps: int = 20_000,
    random_starts: int = 0,
    loss: str | Loss = "logistic",
    head: HeadLike = "linear",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Prediction:
    """Predict what a run of softmax attention will select, and prove it.

        W(k) ≈ W_fin + R(k) · W_mm,   R → ∞

    The run is followed, exactly, until a theorem proves where it ends; ``W_mm`` solves the SVM that
    separates the selected tokens, in the norm that the optimiser implies. The verdict says how sure
    that is:

    - *guaranteed*: a theorem of the papers promises the best tokens from every start (paper A,
      Theorem 4 for one sequence; Theorem 6 with no stationary point and no other locally optimal
      selection).
    - *guaranteed from this start*: from step ``since`` on, Theorem A (the loss is below that of
      every other selection), Theorem B (W is in a funnel around a locally optimal direction) or,
      for mirror descent, Theorem C (it is in a cone around one) proves that this run ends in
      ``selection``; see ``docs/guarantees.md``.
    - *conjectured*: the run has settled in a locally optimal selection, and no theorem proves that
      it stays; or a head mixes several tokens, and their SVM is feasible (paper A, Section 6).
    - *undecided*: the run still moves, rests at a finite point, or tokens tie.

    Args:
        data: tokens, queries, labels and head, with any batch ``*B``. Equal tokens of a sequence
            are one token with the attention of all.
        parameter: "W" or "KQ".
        p: of mirror descent; 2 is gradient descent.
        init: where the run starts, as in :func:`attnmargin.train`, or "random"; zero by default.
        lr: length of the steps, or rate of plain descent; lr and init may have batch dimensions of
            their own, which broadcast with those of the data.
        normalize: whether every step has length lr.
        method: "gd" or "mirror"; p decides if it is None. Or "steepest" with ``norm``, "adam", or
            settings from ``am.methods``: no theorem on attention covers these, and the verdict is
            *conjectured* at best.
        norm: of steepest descent, as in :func:`attnmargin.train`.
        steps: for how many steps a run is followed at most.
        random_starts: how many runs from random starts to follow as well, for ``starts``.
        loss, head: as in :func:`attnmargin.train`; a head that is not linear must be a
            :class:`QuadraticHead`, whose best mixture of tokens can be computed.
        limit: how many selections a search for alternatives may solve.
        seed: of random starts.
        progress: called with the number of steps taken and the total.

    Returns:
        A :class:`Prediction`. Nothing is raised if no W makes the selection: see its
        ``solution.status``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(6, 8, 10, name="predict")
        >>> prediction = am.predict(data)
        >>> prediction.verdict
        <Verdict.FROM_START: 'guaranteed from this start'>
        >>> prediction.selection.tolist(), int(prediction.since)
        ([0, 7, 2, 3, 7, 7], 724)
    """
    check_kind("data", data, AttentionData)
    p = check_power(p)
    check_parameter(parameter, PREDICTED)
    check_whole(0, random_starts=random_starts)
    options = {"init": init, "lr": lr, "normalize": normalize, "method": method, "norm": norm,
               "steps": steps, "seed": seed}  # fmt: skip
    if data.X.device.type != "cpu":
        # Small exact problems, one after the other: the CPU's compiled solvers are for them.
        options["init"] = _at_home(init)
        home = predict(data.to("cpu"), parameter, p, random_starts=random_starts, loss=loss,
                       head=head, limit=limit, progress=progress, **options)  # fmt: skip
        return home.beside(data)
    if isinstance(head, ScoreHead):
        needs = "the linear head of the data, or a QuadraticHead: its theorems are about these"
        raise InputError("head", "a ScoreHead", needs)
    chosen, batch = as_head(head), data.batch_shape
    check_limit(limit)
    data, course = plan(data, (parameter, p, loss), options)
    norm = course.norm
    if chosen is not None:
        if random_starts or data.batch_shape != batch:
            got = "random starts" if random_starts else "a batch of rates or starts"
            raise InputError("head", f"a head that mixes tokens with {got}", "the linear head")
        return _predict_sets(data, course, norm, chosen)
    facts = Facts(data, parameter, p, loss, limit, progress)
    everywhere = from_every_start(facts)
    if course.settings is not None:
        facts.norm, everywhere = norm, torch.zeros_like(everywhere)
    flat = follow(data.flatten(), course.flatten(), progress)
    regular = holds(assumption_a(facts)).flatten()
    verdict = _verdicts(data.flatten(), norm, flat, everywhere.flatten(), regular)
    ending = flat.reshape(data.batch_shape)
    inner = (...,) + (None,) * (ending.selection.ndim - len(data.batch_shape))
    # Weights that rest because nothing selects the best tokens select nothing themselves.
    wanted = everywhere | (ending.resting & facts.solution.infeasible)
    selection = facts.best.where(wanted[inner], ending.selection)
    shared = ending.together & ~everywhere
    if bool(shared.any()):
        selection = _with_ties(data, selection, shared)
    starts = many_starts(data, course, random_starts, progress) if random_starts else None
    checks: list[Check] | None = None if course.settings is None else []
    return Prediction(
        data, None, norm, course, facts.best, selection, _solution(data, selection, norm), None,
        verdict.reshape(tuple(data.batch_shape))[()], ending, checks, limit, progress, starts,
    )  # fmt: skip


def _at_home(init: Any) -> Any:
    """Move a start to the CPU."""
    if isinstance(init, tuple | list) and all(isinstance(part, Tensor) for part in init):
        return tuple(part.cpu() for part in init)
    return init.cpu() if isinstance(init, Tensor) else init


def _solution(data: AttentionData, selection: Tensor, norm: Norm) -> Solution:
    own = merge_copies(data).data
    build = set_problem if selection.dtype == torch.bool else token_problem
    return solve(build(own.X, own.z, selection, own.mask), norm)


def _with_ties(data: AttentionData, selection: Tensor, shared: Tensor) -> Tensor:
    """Return sets, bool ``(*B, n, T)``: where shared, all the tokens of largest score."""
    own = merge_copies(data).data
    inner = (...,) + (None,) * (selection.ndim - shared.ndim + 1)
    chosen = one_hot(selection, data.T).bool()
    return best_tokens(own).where(shared[inner], chosen)


def _verdicts(
    data: AttentionData, norm: Norm, ending: Ending, everywhere: Tensor, regular: Tensor
) -> NDArray[Any]:
    """Return the verdicts of a batch ``(B,)``; regular is where Assumption A holds."""
    sure = ending.proved | ending.together
    led = torch.isfinite(ending.onward) & ~ending.parted
    likely = (ending.calm | led) & regular & ~sure & ~everywhere
    rows = likely.nonzero()[:, 0]
    if len(rows):
        own = merge_copies(data[rows]).data
        likely[rows] = locality(own, ending.selection[rows], norm).local
    names = np.array([Verdict.UNDECIDED, Verdict.CONJECTURED, Verdict.FROM_START,
                      Verdict.GUARANTEED], dtype=object)  # fmt: skip
    code = likely.long().masked_fill(sure, 2).masked_fill(everywhere, 3)
    verdicts: NDArray[Any] = names[code.cpu().numpy()]
    return verdicts


def _predict_sets(data: AttentionData, course: Course, norm: Norm, head: Head) -> Prediction:
    """Predict for a head that mixes tokens: sets, their direction, and the finite part."""
    share = optimal_composition(data, head)
    solution = solve(token_problem(data.X, data.z, share > 0, data.mask), norm)
    finite = solve(finite_problem(data.X, data.z, share, data.mask), norm)
    checks = set_checks(data, head, share, solution, finite)
    possible = solution.optimal & finite.optimal & unique_composition(data, share)
    # Where every sequence selects a single token, nothing is known of the others that might win.
    possible &= ((share > 0).sum(-1) > 1).flatten(len(data.batch_shape)).any(-1)
    names = np.array([Verdict.UNDECIDED, Verdict.CONJECTURED], dtype=object)
    verdict = names[possible.long().cpu().numpy()]
    return Prediction(
        data, head, norm, course, share > 0, share > 0, solution, finite, verdict, None, checks
    )
