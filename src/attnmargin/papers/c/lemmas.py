"""Paper C: Lemmas 2 and 3, Theorems 1 and 2, and the automaton."""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.functional import hessian

from attnmargin.attention.softmax import probabilities
from attnmargin.base.seeds import seed_of
from attnmargin.data.random import normal
from attnmargin.graphs import Automaton, cyclic_data
from attnmargin.graphs.next_token import next_token_data, next_token_head
from attnmargin.papers.c.data import (
    ACYCLIC,
    GENERAL,
    Instances,
    distance,
    draw,
    mixed,
    ordered,
)
from attnmargin.papers.c.descent import long_run
from attnmargin.papers.c.local import general_heads
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    largest_of,
    least_of,
    mean_of,
    share_of,
    stated,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.training import regularization_path, train
from attnmargin.training.measures import misalignment

# --- Lemma 3 --------------------------------------------------------------------------------

_POINTS = 3


def plain_loss(E: Tensor, ids: Tensor, labels: Tensor, W: Tensor) -> Tensor:
    """Compute the log-loss with C Eᵀ = I, written out for autograd: a second implementation."""
    X = E[ids]
    logits = (X @ W @ X[:, -1].unsqueeze(-1)).squeeze(-1)
    own = logits.masked_fill(ids != labels.unsqueeze(-1), -torch.inf)
    return (torch.logsumexp(logits, -1) - torch.logsumexp(own, -1)).mean()


def _run_convexity(task: Task) -> Arrays:
    instances = draw("C:convexity", GENERAL, task, mixed)
    W_cyc, bases = instances.corrections(), instances.bases()
    generator = torch.Generator().manual_seed(seed_of("C:convexity", base=task.seed))
    least, inside, ends = [], [], []
    for k, basis in enumerate(bases):
        basis = basis[basis.flatten(1).any(-1)].flatten(1)
        arguments = (instances.E[k], instances.ids[k], instances.labels[k])
        for _ in range(_POINTS):
            W = 3.0 * normal((GENERAL.d, GENERAL.d), generator, sphere=False)
            H = hessian(partial(plain_loss, *arguments), W).reshape(GENERAL.d**2, -1)
            least.append(float(torch.linalg.eigvalsh(H)[0]))
            inside.append(float(torch.linalg.eigvalsh(basis @ H @ basis.mT)[0]))
        ends.append(gradient_on_cyclic_data(instances, k, W_cyc[k]))
        task.progress(k + 1, len(bases))
    return {"least": np.array(least), "inside": np.array(inside), "gradient": np.array(ends)}


def gradient_on_cyclic_data(instances: Instances, k: int, W: Tensor) -> float:
    """Compute the gradient norm of the loss on the cyclic data, by autograd."""
    E, at = instances.E[k], W.clone().requires_grad_()
    data = cyclic_data(instances.ids[k], instances.labels[k], instances.graphs[k])
    total = at.new_zeros(())
    for x, y, last in zip(data.sequences, data.labels, data.last, strict=True):
        logits = E[x] @ at @ E[int(last)]
        own = logits[torch.tensor(x) == int(y)]
        total = total + torch.logsumexp(logits, 0) - torch.logsumexp(own, 0)
    (gradient,) = torch.autograd.grad(total / len(data.labels), at)
    return float(torch.linalg.matrix_norm(gradient))


def _claims_convexity(results: Results) -> list[Claim]:
    own = results["data"]
    count = len(own["gradient"])
    return [
        at_least(f"least eigenvalue of {_POINTS * count} Hessians", least_of(own["least"]),
                 -1e-12),
        stated("least eigenvalue on the cyclic subspace", least_of(own["inside"]), "> 0",
              bool((own["inside"] > 0).all())),
        at_most(f"gradient at W_cyc, worst of {count}", largest_of(own["gradient"]), 1e-10),
    ]  # fmt: skip


def _pictures_convexity(results: Results) -> list[Picture]:
    own = results["data"]
    inside: Series = {
        "kind": "points",
        "name": "on the cyclic subspace",
        "x": np.arange(len(own["inside"])),
        "y": np.sort(own["inside"]),
    }
    all_of: Series = {
        "kind": "points",
        "name": "on all of R^{d × d}, in size",
        "x": np.arange(len(own["least"])),
        "y": np.sort(np.abs(own["least"]) + 1e-20),
    }
    panel = Panel(
        title="least eigenvalues of Hessians",
        axes=("Hessian, sorted", "eigenvalue"),
        series=[inside, all_of],
        logarithmic=(False, True),
    )
    caption = (
        "Lemma 3: the log-loss with C Eᵀ = I is convex, strictly on the cyclic subspace. "
        f"{GENERAL}; {_POINTS} random W per data set, Hessians by autograd."
    )  # fmt: skip
    return [Picture(name="convexity", caption=caption, panels=[panel], columns=1)]


# --- Lemma 2 --------------------------------------------------------------------------------


def _run_orthogonal(task: Task) -> Arrays:
    instances = draw("C:orthogonal", GENERAL, task, mixed)
    W_mm, W_cyc, bases = instances.solution().W, instances.corrections(), instances.bases()
    inner = (W_mm * W_cyc).sum((-2, -1))
    outside = distance(W_cyc, bases, W_cyc)  # the part outside S_cyc
    inside = torch.linalg.matrix_norm(torch.einsum("brde,bde->br", bases, W_mm).unsqueeze(-1))
    return {"inner": inner.numpy(), "outside": outside.numpy(), "inside": inside.numpy()}


def _claims_orthogonal(results: Results) -> list[Claim]:
    own = results["data"]
    words = f"|⟨W_cyc, W_mm⟩|, worst of {len(own['inner'])}"
    return [
        at_most(words, largest_of(np.abs(own["inner"])), 1e-10),
        at_most("W_cyc outside of S_cyc", largest_of(own["outside"]), 1e-10),
        at_most("W_mm inside of S_cyc", largest_of(own["inside"]), 1e-10),
    ]


def _pictures_orthogonal(results: Results) -> list[Picture]:
    own = results["data"]
    names = {"inner": "|⟨W_cyc, W_mm⟩|", "outside": "W_cyc outside of S_cyc",
             "inside": "W_mm inside of S_cyc"}  # fmt: skip
    series: list[Series] = [
        {"kind": "points", "name": name, "x": np.arange(len(own[key])),
         "y": np.sort(np.abs(own[key]) + 1e-20)}
        for key, name in names.items()
    ]  # fmt: skip
    panel = Panel(title="Lemma 2", axes=("data set, sorted", "size"), series=series,
                  logarithmic=(False, True))  # fmt: skip
    caption = f"W_cyc lies in the cyclic subspace, and W_mm is orthogonal to it. {GENERAL}."
    return [Picture(name="orthogonal", caption=caption, panels=[panel], columns=1)]


# --- Theorems 1 and 2 -----------------------------------------------------------------------

_FAR = (10.0, 30.0, 100.0, 300.0, 1000.0)
# The last two have general heads, under the hypotheses of Theorem 1 as printed.
_RADII = {"acyclic": _FAR, "general": (5.0, 10.0, 20.0, 40.0, 60.0), "logistic": _FAR,
          "squared": _FAR}  # fmt: skip


_KINDS = {
    "acyclic": "acyclic data",
    "general": "general data",
    "logistic": "acyclic data, logistic loss, general head",
    "squared": "acyclic data, squared loss, general head",
}


def _run_path(task: Task) -> Arrays:
    """Compare the best weights of growing norm with Graph-SVM and the cyclic correction."""
    kind = task.settings["kind"]
    acyclic = kind != "general"
    sizes, wanted = (ACYCLIC, ordered) if acyclic else (GENERAL, mixed)
    instances = draw(f"C:path {kind}", sizes, task, wanted, acyclic)
    loss, head = "log", instances.head()
    if kind in ("logistic", "squared"):
        loss, C = kind, general_heads(instances.E, seed_of("C:path heads", base=task.seed))
        head = next_token_head(instances.E, instances.ids, instances.labels, C)
    path = regularization_path(instances.data(), _RADII[kind], loss=loss, head=head,
                               progress=task.progress)  # fmt: skip
    arrays = {"radius": path.steps, "off": misalignment(path.W, instances.solution().W)}
    if not acyclic:
        arrays["distance"] = distance(path.W, instances.bases(), instances.corrections())
    return {name: x.numpy() for name, x in arrays.items()}


def _claims_path(results: Results) -> list[Claim]:
    claims = []
    for kind, radii in _RADII.items():
        off = results[kind]["off"]
        falls = share_of((np.diff(off, axis=0) < 0).all(0))
        words = f"{_KINDS[kind]}: share of paths whose misalignment always falls"
        bound = 1e-2 if kind == "general" else 1e-3
        claims += [
            at_least(words, falls, 1.0),
            at_most(f"{_KINDS[kind]}: misalignment at R = {radii[-1]:g}, mean",
                    mean_of(off[-1]), bound),
        ]  # fmt: skip
    far = results["general"]["distance"][-1]
    claims.append(at_most("general data: ‖Π_cyc W − W_cyc‖ at the end, worst", largest_of(far),
                          1e-3))  # fmt: skip
    return claims


def _pictures_path(results: Results) -> list[Picture]:
    off: list[Series] = [
        mean_curve(_KINDS[kind], radii, results[kind]["off"], log=True, style=i, marker="o")
        for i, (kind, radii) in enumerate(_RADII.items())
    ]
    own = results["general"]
    inside = [mean_curve("", own["radius"], own["distance"], log=True, marker="o")]
    panels = [
        Panel(title="direction",
              axes=("size of the weights (norm R)", "distance from Graph-SVM (1 − corr)"),
              series=off,
              logarithmic=(True, True)),
        Panel(title="inside components, general data",
              axes=("size of the weights (norm R)", "distance (‖Π_cyc W − W_cyc‖)"),
              series=inside, logarithmic=(True, True)),
    ]  # fmt: skip
    caption = (
        "Best weights of norm R (Algo-RP), means with 95 % bands. Theorems 1 and 2: the direction "
        "tends to Graph-SVM, and the part inside components to the cyclic correction. The log-loss "
        "has C Eᵀ = I; the other losses have heads that obey Assumption 3 alone."
    )
    return [Picture(name="path", caption=caption, panels=panels, columns=2)]


# --- the automaton --------------------------------------------------------------------------

_PROMPTS, _TRAINED, _RATE = 20, 20_000, 0.01
# If the graph does not decide, W_mm does once R times its margin is large.
_CLEAR = 0.05


def _run_automaton(task: Task) -> Arrays:
    """Measure the total variation between the trained model and the automaton."""
    instances = draw("C:automaton", GENERAL, task, mixed)
    generator = torch.Generator().manual_seed(seed_of("C:prompts", base=task.seed))
    shape = (len(instances.E), _PROMPTS, GENERAL.T)
    fresh = torch.randint(0, GENERAL.K, shape, generator=generator)
    prompts = torch.cat((instances.ids, fresh), 1)
    rules = [[Automaton(g, e)] for g, e in zip(instances.graphs, instances.E, strict=True)]
    said = [
        [rule.next(p.tolist()) for p in own] for (rule,), own in zip(rules, prompts, strict=True)
    ]
    wanted = torch.stack([torch.stack([word.distribution for word in row]) for row in said])
    run = train(instances.data(), head=instances.head(), loss="log", lr=_RATE, steps=_TRAINED,
                record=_TRAINED // 50, progress=task.progress)  # fmt: skip
    later = long_run(instances, run.W[-1], instances.corrections(), task)[1]
    far = torch.stack([_variation(instances, prompts, W, wanted) for W in run.W])
    return {
        "steps": run.steps.numpy(),
        "variation": far.numpy(),
        "long": _variation(instances, prompts, later[-1], wanted).numpy(),
        "rule": np.array([[str(word.rule) for word in row] for row in said]),
        "margin": np.array([[word.margin for word in row] for row in said]),
        "known": np.arange(prompts.shape[1]) < GENERAL.n,
    }


def _variation(instances: Instances, prompts: Tensor, W: Tensor, wanted: Tensor) -> Tensor:
    """Compute the total variation of the next-token distributions, ``(B, prompts)``."""
    s = probabilities(next_token_data(instances.E, prompts), W)
    said = torch.zeros_like(wanted).scatter_add_(-1, prompts, s)
    return 0.5 * (said - wanted).abs().sum(-1)


def _decided(own: Arrays) -> NDArray[np.bool_]:
    return np.isin(own["rule"], ("retrieval", "composition"))


def _claims_automaton(results: Results) -> list[Claim]:
    own = results["data"]
    decided, known = _decided(own), own["known"]
    end, late = own["variation"][-1], own["long"]
    fresh = decided & ~known
    margin = (own["rule"] == "margin") & (own["margin"] > _CLEAR)
    words = f"training sequences of {len(end)} data sets, {_TRAINED} steps"
    return [
        at_most(f"{words}: total variation, worst", largest_of(end[:, known]), 0.01),
        at_most(f"{int(fresh.sum())} new prompts that the graph decides, worst",
                largest_of(end[fresh]), 0.01),
        at_most("both, after the long run, in which Π_cyc W = W_cyc, worst",
                largest_of(late[decided]), 0.01),
        at_most(f"{int(margin.sum())} that a margin above {_CLEAR:g} decides, long run, worst",
                largest_of(late[margin]), 0.01),
        at_least("share of training sequences that the graph decides",
                 share_of(decided[:, known]), 1.0),
    ]  # fmt: skip


def _pictures_automaton(results: Results) -> list[Picture]:
    own = results["data"]
    decided, known = _decided(own), own["known"]
    groups = {
        "training sequences": decided & known,
        "new prompts, decided by the graph": decided & ~known,
        "new prompts, decided by the margin": own["rule"] == "margin",
    }
    series: list[Series] = [
        mean_curve(name, own["steps"][1:], own["variation"][1:][:, use], log=True, style=i)
        for i, (name, use) in enumerate(groups.items())
    ]
    panel = Panel(
        title="trained model against automaton",
        axes=("training step", "error (total variation)"),
        series=series,
        logarithmic=(True, True),
    )
    names, counts = np.unique(own["rule"][:, ~known], return_counts=True)
    bars: Series = {
        "kind": "bar",
        "name": "",
        "x": np.arange(len(names)),
        "y": 100.0 * counts / counts.sum(),
    }
    rules = Panel(
        title="which rule decides new prompts",
        axes=("", "percent"),
        series=[bars],
        ticks=[str(name) for name in names],
    )
    caption = (
        f"{GENERAL}, steps of length {_RATE:g}: total variation between the next-token "
        "distribution of the trained model and that of the automaton (hard retrieval by "
        "Graph-SVM, soft composition by the cyclic correction); means with 95 % bands."
    )  # fmt: skip
    return [Picture(name="automaton", caption=caption, panels=[panel, rules], columns=2)]


EXPERIMENTS = (
    Experiment("C:convexity", "Lemma 3: convexity, and Newton's W_cyc", 100, (Point("data"),),
               _run_convexity, _claims_convexity, _pictures_convexity),
    Experiment("C:orthogonal", "Lemma 2: W_cyc and W_mm are orthogonal", 100, (Point("data"),),
               _run_orthogonal, _claims_orthogonal, _pictures_orthogonal),
    Experiment("C:path", "Theorems 1 and 2: regularisation paths", 20,
               tuple(Point(kind, {"kind": kind}) for kind in _RADII), _run_path, _claims_path,
               _pictures_path),
    Experiment("C:automaton", "The automaton against the trained model", 100, (Point("data"),),
               _run_automaton, _claims_automaton, _pictures_automaton),
)  # fmt: skip
