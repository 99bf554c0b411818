"""What is said of heads: selection, margin against the best one, norms, each beside a null."""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, final

from torch import Tensor

from attnmargin.base.compiled import one_thread, wanted_threads
from attnmargin.base.display import Summarised
from attnmargin.base.progress import Progress
from attnmargin.models.contradiction import Contradiction, contradiction_of
from attnmargin.models.fit import Choices, Fit, fit_choices
from attnmargin.models.hands import hands, refusal
from attnmargin.models.head import Head
from attnmargin.models.measure import Measure, of_draws, of_texts, with_scores
from attnmargin.models.null import random_head
from attnmargin.models.queries import Queries, selections
from attnmargin.models.settings import Settings
from attnmargin.models.shown import Shown, shown_queries
from attnmargin.models.spectrum import Spectrum, spectrum

_MEASURES = ("saturation", "entropy", "efficiency", "cosine", "free", "kept")
# Slack below this is none: the solver knows rows to about 1e-12 of their bound.
_NONE = 1e-9


@final
@dataclass(frozen=True, eq=False, repr=False)
class HeadStudy(Summarised):
    """What is known about one head; NaN where a number does not exist."""

    layer: int
    index: int
    queries: int  # that see at least two tokens
    saturation: Measure  # share of queries of which one token has more than the threshold
    entropy: Measure  # of the attention, relative to the uniform one
    efficiency: Measure  # margin of the projected W over the best margin
    cosine: Measure  # of the projected W with the max-margin solution
    margin: float  # of the projected W of length one, mean of the draws
    best: float  # the best margin, mean of the draws
    feasible: int  # draws whose selection some W realises
    draws: int  # attention SVMs that were solved
    asked: int  # queries in them
    held: float  # share of their rows that the head satisfies
    free: Measure  # share of the queries without slack in the solution; NaN for a hard margin
    kept: Measure  # share of those with a slack below 1: the solution selects their token
    gap: float  # largest certified gap among them
    spectrum: Spectrum
    shown: list[Shown]  # the first draw
    contradiction: Contradiction | None = None  # of the first that no W satisfies
    reason: str = ""  # why there is no margin

    def summary(self) -> dict[str, str]:
        """Return the main numbers, by name."""
        return {
            "place": f"layer {self.layer}, head {self.index}",
            "saturated": _beside(self.saturation),
            "efficiency": self.reason or _beside(self.efficiency),
            "projected cosine": self.reason or _beside(self.cosine),
        }


def _beside(own: Measure) -> str:
    return f"{own.value:.3g} (random heads: {own.null:.3g}, z = {own.z:.2g})"


@one_thread
def study_heads(
    heads: Iterable[Head], settings: Settings | None = None, progress: Progress | None = None
) -> list[HeadStudy]:
    """Study heads: what they select, and how near they are to its max-margin solution.

    For every head: the share of saturated queries and the entropy; the attention SVM of what it
    selects at its most decided queries, or at others (:class:`Settings`), and the *efficiency*: the
    margin of its W, projected on span(token differences) × span(queries), over the best margin.
    Each beside random heads with the same singular values on the same texts, as z-scores. Some W
    realises what a head selects, because its own does, unless equal tokens tie for a query.

    Args:
        heads: from :func:`read_heads`, or heads that you built.
        settings: which queries are asked, and the price of slack.
        progress: called with the number of heads done and their total.

    Returns:
        One :class:`HeadStudy` per head, in their order.

    Example:
        >>> import attnmargin as am, torch
        >>> from attnmargin.base.seeds import seed_of
        >>> draw = torch.Generator().manual_seed(seed_of("docs"))
        >>> W, X = torch.randn(2, 3, 8, generator=draw), torch.randn(4, 9, 8, generator=draw)
        >>> own = am.models.study_heads([am.models.Head(*W, X)], am.models.Settings(queries=3))[0]
        >>> own.feasible, 0.0 < own.efficiency.value < 1.0
        (4, True)
    """
    own = settings or Settings()
    listed, found = list(heads), []
    with ThreadPoolExecutor(wanted_threads()) as pool:
        for study in pool.map(lambda head: _study(head, own), listed):
            found.append(study)
            if progress is not None:
                progress(len(found), len(listed))
    scores = {name: with_scores([getattr(own, name) for own in found]) for name in _MEASURES}
    for k, study in enumerate(found):
        scored: dict[str, Any] = {name: scores[name][k] for name in _MEASURES}
        found[k] = replace(study, **scored)
    return found


def _study(head: Head, settings: Settings) -> HeadStudy:
    queries = selections(head)
    randoms = [random_head(head, k, settings.seed) for k in range(settings.draws)]
    theirs = [selections(own) for own in randoms]
    dealt = hands(head, queries, settings)
    reason = refusal(head, queries, dealt, settings)
    fits: list[Fit] = []
    nulls: list[Fit] = []
    if not reason:
        played = _played(head, theirs, dealt, settings)
        players = [*[head] * len(dealt), *randoms[: len(played)]]
        every = fit_choices(players, [*dealt, *played], price=settings.cost)
        fits, nulls = every[: len(dealt)], every[len(dealt) :]
    return HeadStudy(
        head.layer,
        head.index,
        len(queries),
        of_texts(_saturated(queries, settings), queries.text,
                 [_mean(_saturated(own, settings)) for own in theirs]),
        of_texts(queries.entropy, queries.text, [_mean(own.entropy) for own in theirs]),
        of_draws([f.efficiency for f in fits], [f.efficiency for f in nulls]),
        of_draws([f.cosine for f in fits], [f.cosine for f in nulls]),
        _average([f.margin for f in fits]),
        _average([f.best for f in fits]),
        sum(f.feasible for f in fits),
        len(fits),
        sum(len(own) for own in dealt) if fits else 0,
        _average([f.held for f in fits]),
        of_draws([_below(f, _NONE) for f in fits], [_below(f, _NONE) for f in nulls]),
        of_draws([_below(f, 1.0) for f in fits], [_below(f, 1.0) for f in nulls]),
        max((float(f.solution.certificate.gap) for f in fits if f.feasible), default=math.nan),
        spectrum(head),
        shown_queries(head, dealt[0], fits[0] if fits else None) if dealt else [],
        _contradiction(fits, dealt),
        reason,
    )  # fmt: skip


def _played(
    head: Head, theirs: list[Queries], dealt: list[Choices], settings: Settings
) -> list[Choices]:
    """Deal every random head one hand, as large as those of the head."""
    count = sum(len(own) for own in dealt)
    if settings.which == "widest":
        theirs = theirs[: len(dealt)]
    return [hands(head, own, settings, count)[k % len(dealt)] for k, own in enumerate(theirs)]


def _below(fit: Fit, slack: float) -> float:
    """Compute the share of queries with less slack in the solution; NaN for a hard margin."""
    return _mean((fit.slack < slack).double()) if fit.price < math.inf else math.nan


def _contradiction(fits: list[Fit], dealt: list[Choices]) -> Contradiction | None:
    """Find the first contradiction of the hands."""
    pairs = zip(fits, dealt, strict=False)
    return next((found for f, own in pairs if (found := contradiction_of(f.solution, own))), None)


def _saturated(queries: Queries, settings: Settings) -> Tensor:
    return (queries.share > settings.saturated).double()


def _mean(x: Tensor) -> float:
    return float(x.mean()) if len(x) else math.nan


def _average(values: Sequence[float]) -> float:
    known = [x for x in values if math.isfinite(x)]
    return sum(known) / len(known) if known else math.nan
