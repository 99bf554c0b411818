"""Paper C, figures 3 and 4: gradient descent, Graph-SVM and the cyclic correction."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.heads import ScoreHead
from attnmargin.graphs.cyclic import component_tokens
from attnmargin.papers.c.data import (
    ACYCLIC,
    GENERAL,
    Instances,
    distance,
    draw,
    mixed,
    ordered,
    projected,
)
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    largest_of,
    least_of,
    mean_of,
)
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.training import train
from attnmargin.training.measures import correlation

_STEPS, _RATE = 4000, 0.01
_LONG, _LONG_RATE = 20_000, 0.1
_PLAIN = 100_000  # steps of the plain continuation


def long_run(instances: Instances, W: Tensor, W_cyc: Tensor, task: Task) -> tuple[Tensor, Tensor]:
    """Continue descent after W settles inside components: steps ``(R,)`` and W ``(R, B, d, d)``.

    Inside the cyclic subspace the gradient vanishes at ``W_cyc``; outside, it is of order e^{−R}.
    The rest of the gradient belongs to ``−log Σ s`` over the component of the label, and is
    orthogonal to the subspace. Normalising it by itself makes R grow linearly, not
    logarithmically, with the number of steps.
    """
    bases, data = instances.bases(), instances.data()
    inside = [component_tokens(g.samples, g)[0] for g in instances.graphs if g.samples is not None]
    head = ScoreHead(np.stack(inside).reshape(instances.ids.shape).astype(float))
    start = W - projected(W, bases) + W_cyc
    run = train(data, head=head, loss="log", lr=_LONG_RATE, steps=_LONG, record=_LONG // 100,
                init=start, fixed=bases, progress=task.progress)  # fmt: skip
    return run.steps, run.W


def _run(task: Task) -> Arrays:
    acyclic = task.settings["acyclic"]
    sizes, wanted = (ACYCLIC, ordered) if acyclic else (GENERAL, mixed)
    instances = draw(task.settings["name"], sizes, task, wanted, acyclic)
    run = train(instances.data(), head=instances.head(), loss="log", lr=_RATE, steps=_STEPS,
                record=_STEPS // 100, progress=task.progress)  # fmt: skip
    W_mm, W_cyc = instances.solution().W, instances.corrections()
    steps, later = long_run(instances, run.W[-1], W_cyc, task)
    plain = train(instances.data(), head=instances.head(), loss="log", lr=_RATE, steps=_PLAIN,
                  record=_PLAIN // 50, progress=task.progress)  # fmt: skip
    arrays = {
        "steps": run.steps,
        "correlation": correlation(run.W, W_mm),
        "norm": torch.linalg.matrix_norm(run.W),
        "long_steps": steps,
        "long_correlation": correlation(later, W_mm),
        "plain_steps": plain.steps,
        "plain_correlation": correlation(plain.W, W_mm),
    }
    if not acyclic:
        arrays["distance"] = distance(run.W, instances.bases(), W_cyc)
        arrays["size"] = torch.linalg.matrix_norm(W_cyc)
    return {name: x.numpy() for name, x in arrays.items()}


def _ends(results: Results, bound: float) -> list[Claim]:
    own = results["data"]
    end, late = own["correlation"][-1], own["long_correlation"][-1]
    words = f"mean correlation with Graph-SVM at {_STEPS} steps, {len(end)} trials"
    longer = f"the same after {_LONG} further steps that are normalised outside of S_cyc"
    return [
        at_least(words, mean_of(end), bound),
        at_least(longer, mean_of(late), 0.999),
        at_least("the same, worst trial", least_of(late), 0.999),
    ]


def _slow(results: Results) -> list[Measurement]:
    """Measure plain continued descent: it gets there too, but logarithmically slowly."""
    mean = float(results["data"]["plain_correlation"][-1].mean())
    what = f"mean correlation if steps of length {_RATE:g} are only continued to {_PLAIN}"
    return [Measurement(what, mean)]


def _claims_fig3(results: Results) -> list[Claim]:
    return _ends(results, 0.99)


def _claims_fig4(results: Results) -> list[Claim]:
    far = results["data"]["distance"][-1]
    return [
        *_ends(results, 0.985),
        at_most("mean ‖Π_cyc W − W_cyc‖", mean_of(far), 0.01),
        at_most("the same, worst trial", largest_of(far), 0.01),
    ]


def _panels(results: Results) -> list[Panel]:
    own = results["data"]
    short: Series = mean_curve("", own["steps"][1:], 1.0 - own["correlation"][1:], log=True)
    far = np.maximum(1.0 - own["long_correlation"][1:], 1e-12)
    late: Series = mean_curve("normalised outside of S_cyc", own["long_steps"][1:], far, log=True)
    off = 1.0 - own["plain_correlation"][1:]
    plain: Series = mean_curve("only continued", own["plain_steps"][1:], off, log=True, style=1)
    return [
        Panel(title=f"steps of length {_RATE:g}",
              axes=("training step", "distance (1 − correlation)"),
              series=[short], logarithmic=(False, True)),
        Panel(title=f"further steps: of length {_LONG_RATE:g}, or as before",
              axes=("training step", "distance (1 − correlation)"),
              series=[late, plain], logarithmic=(True, True)),
    ]  # fmt: skip


_LATER = (
    "Where W has come to rest inside components, further steps are normalised outside of the "
    "cyclic subspace: the norm then grows by steps, not by their logarithm."
)


def _pictures_fig3(results: Results) -> list[Picture]:
    caption = (
        f"Acyclic data, {ACYCLIC}, log-loss, C Eᵀ = I: misalignment of W with Graph-SVM, means "
        f"with 95 % bands. Paper: correlation above 0.99 at {_STEPS} steps. {_LATER}"
    )
    return [Picture(name="fig3", caption=caption, panels=_panels(results), columns=2)]


def _pictures_fig4(results: Results) -> list[Picture]:
    own = results["data"]
    inside: Series = mean_curve("", own["steps"], own["distance"], log=True)
    panel = Panel(title="inside components",
                  axes=("training step", "distance (‖Π_cyc W − W_cyc‖)"), series=[inside],
                  logarithmic=(False, True))  # fmt: skip
    first, later = _panels(results)
    caption = (
        f"Data with cycles, {GENERAL}: misalignment with Graph-SVM, and distance of the part "
        "inside components to the cyclic correction, found by Newton; means with 95 % bands. "
        f"Paper: about 0.987, and below 0.01, at {_STEPS} steps. {_LATER}"
    )
    return [Picture(name="fig4", caption=caption, panels=[first, panel, later], columns=3)]


EXPERIMENTS = (
    Experiment("C:fig3", "Acyclic data: descent meets Graph-SVM", 100,
               (Point("data", {"acyclic": True, "name": "C:fig3"}),), _run, _claims_fig3,
               _pictures_fig3, measurements=_slow),
    Experiment("C:fig4", "General data: Graph-SVM and the cyclic correction", 100,
               (Point("data", {"acyclic": False, "name": "C:fig4"}),), _run, _claims_fig4,
               _pictures_fig4, measurements=_slow),
)  # fmt: skip
