"""Paper C, figures 5 and 6: with general heads, descent finds the SVM of its own selection."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.heads import Head, ScoreHead, VocabularyHead
from attnmargin.attention.softmax import probabilities
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import normal
from attnmargin.graphs import TokenGraphs, graph_problem, pseudo_graphs
from attnmargin.graphs.cyclic import component_tokens
from attnmargin.graphs.next_token import next_token_data, next_token_head
from attnmargin.graphs.samples import Samples, as_samples
from attnmargin.papers.c.data import (
    ACYCLIC,
    Instances,
    distance,
    draw,
    ordered,
    padded_bases,
)
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    mean_of,
    more_than,
    share_of,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation

_STEPS, _RATE = 2000, 0.1
# Tokens with more attention than this count as selected.
SELECTED = 1e-3


def general_heads(E: Tensor, seed: int) -> Tensor:
    """Draw classifiers C ``(B, K, d)`` with unit rows that score highest at their own token.

    Each row is redrawn until ``argmax_k c_yᵀ e_k = y`` (paper C, Assumption 3).
    """
    B, K, d = E.shape
    generator = torch.Generator().manual_seed(seed)
    C, missing = torch.zeros_like(E), torch.ones(B, K, dtype=torch.bool)
    while bool(missing.any()):
        drawn = normal((B, K, d), generator)
        good = (drawn @ E.mT).argmax(-1) == torch.arange(K)
        C[missing & good] = drawn[missing & good]
        missing &= ~good
    return C


def _head(kind: str, instances: Instances, C: Tensor) -> Head | ScoreHead:
    if kind == "cross-entropy":
        return VocabularyHead(C, instances.labels)
    return next_token_head(instances.E, instances.ids, instances.labels, C)


def _loss(kind: str) -> str:
    """Return the loss for a score head; cross-entropy brings its own."""
    return "squared" if kind == "squared" else "logistic"


def inside_mask(graphs: list[TokenGraphs], ids: Tensor, labels: Tensor) -> Tensor:
    """Mark tokens in the component of their label, in samples with a choice, ``(B, n, T)``."""
    found = []
    for g, x, y in zip(graphs, ids, labels, strict=True):
        samples: Samples = as_samples(x, y, g.vocabulary)
        inside, composed = component_tokens(samples, g)
        found.append(inside & composed[samples.owner])
    return torch.from_numpy(np.stack(found)).reshape(ids.shape)


def _finite_part(instances: Instances, mask: Tensor, head: Head | ScoreHead, loss: str) -> Tensor:
    """Train from zero on the cyclic data alone, as in the paper; return W ``(B, d, d)``."""
    data: AttentionData = next_token_data(instances.E, instances.ids, mask)
    run = train(data, head=head, loss=loss, lr=lambda k: _RATE / (1.0 + 0.02 * k), steps=_STEPS,
                record=_STEPS)  # fmt: skip
    return run.W[-1]


def _compare(
    W: Tensor, instances: Instances, graphs: list[TokenGraphs], part: Tensor
) -> dict[str, Tensor]:
    """Compute the correlation with Graph-SVM and distance from the finite part, ``(R, B)`` each."""
    solution = solve(graph_problem(instances.E, graphs))
    bases = padded_bases(instances.E, graphs)
    return {
        "correlation": correlation(W, solution.W.nan_to_num(nan=0.0)),
        "distance": distance(W, bases, part),
        "solved": torch.as_tensor(np.asarray(solution.optimal)),
        "acyclic": torch.tensor([g.acyclic for g in graphs]),
    }


def _run(task: Task) -> Arrays:
    kind = task.settings["loss"]
    instances = draw(f"C:{kind}", ACYCLIC, task, ordered)
    C = general_heads(instances.E, seed_of("C:heads", kind, base=task.seed))
    head, loss, data = _head(kind, instances, C), _loss(kind), instances.data()
    run = train(data, head=head, loss=loss, lr=_RATE, steps=_STEPS, record=_STEPS // 100,
                progress=task.progress)  # fmt: skip
    s = probabilities(data, run.W[-1])
    own = [pseudo_graphs(x, p, ACYCLIC.K, threshold=SELECTED)
           for x, p in zip(instances.ids, s, strict=True)]  # fmt: skip
    chosen = instances.ids.gather(-1, s.argmax(-1, keepdim=True))[..., 0]
    arrays: dict[str, Any] = {"steps": run.steps}
    for name, graphs, labels in (("local", own, chosen), ("global", instances.graphs,
                                                          instances.labels)):  # fmt: skip
        part = _finite_part(instances, inside_mask(graphs, instances.ids, labels), head, loss)
        found = _compare(run.W, instances, graphs, part)
        arrays |= {f"{name}_{key}": value for key, value in found.items()}
    return {name: x.numpy() for name, x in arrays.items()}


def _claims(results: Results) -> list[Claim]:
    own = results["data"]
    near, far = (own[f"{name}_correlation"][-1] for name in ("local", "global"))
    inside, outside = (own[f"{name}_distance"][-1] for name in ("local", "global"))
    solved = int((own["local_solved"] & own["global_solved"]).sum())
    return [
        at_least(f"mean correlation with the local Graph-SVM ({solved} of {len(near)} feasible)",
                 mean_of(near), 0.99),
        more_than("correlation with the local one less that with the global one, mean", near, far),
        at_least("share of trials where local is at least as good",
                 share_of(near >= far - 1e-9), 0.9),
        more_than("cyclic distance of the global one less that of the local one, mean",
                  outside, inside),
    ]  # fmt: skip


def _claims_fig5(results: Results) -> list[Claim]:
    own = results["data"]
    single = share_of(own["local_acyclic"])
    inside = mean_of(own["local_distance"][-1])
    return [
        *_claims(results),
        at_least("share of local graphs whose components are all single tokens", single, 1.0),
        at_most("mean cyclic distance, local, is zero", inside, 0.0),
    ]


def _picture(name: str, results: Results, what: str, paper: str) -> list[Picture]:
    own = results["data"]
    pairs = {"local": "local: graphs of what W selects", "global": "global: graphs of the labels"}
    direction: list[Series] = [
        mean_curve(word, own["steps"][1:], 1.0 - own[f"{key}_correlation"][1:], log=True, style=i)
        for i, (key, word) in enumerate(pairs.items())
    ]
    inside: list[Series] = [
        mean_curve(word, own["steps"], own[f"{key}_distance"], style=i)
        for i, (key, word) in enumerate(pairs.items())
    ]
    panels = [
        Panel(title="direction",
              axes=("training step", "distance from Graph-SVM (1 − corr)"), series=direction,
              logarithmic=(False, True)),
        Panel(title="inside components",
              axes=("training step", "distance (‖Π_cyc W − W_cyc‖)"), series=inside),
    ]  # fmt: skip
    caption = (
        f"{what}, general head (Assumption 3), {ACYCLIC}; selected is what has more than "
        f"{SELECTED:g} of the attention; means with 95 % bands. W_cyc is trained from zero on the "
        f"cyclic data, as in the paper. Paper: {paper}"
    )
    return [Picture(name=name, caption=caption, panels=panels, columns=2)]


def _pictures_fig5(results: Results) -> list[Picture]:
    paper = "local above 0.99, and better than global; local distance zero."
    return _picture("fig5", results, "Squared loss (1 − u)²", paper)


def _pictures_fig6(results: Results) -> list[Picture]:
    paper = "local above 0.99, and better than global; distances 0.09 and 9.59."
    return _picture("fig6", results, "Cross-entropy", paper)


EXPERIMENTS = (
    Experiment("C:fig5", "Squared loss, general head: local convergence", 100,
               (Point("data", {"loss": "squared"}),), _run, _claims_fig5, _pictures_fig5),
    Experiment("C:fig6", "Cross-entropy, general head: local convergence", 100,
               (Point("data", {"loss": "cross-entropy"}),), _run, _claims, _pictures_fig6),
)  # fmt: skip
