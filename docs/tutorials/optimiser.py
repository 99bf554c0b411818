"""
For optimiser people: a norm for every step, a margin for every norm
====================================================================

An optimiser that separates its data goes on growing the weights, and their direction is that of a
largest margin. Which norm measures the margin depends on the optimiser. This page trains one
small network with several optimisers, and then measures margins in their norms.
"""

from functools import partial

import numpy as np
import torch

import attnmargin as am

# %%
# Drop-in optimisers
# ------------------
#
# :class:`attnmargin.MirrorDescent` and :class:`attnmargin.SteepestDescent` are ``torch.optim``
# optimisers. The rate of mirror descent acts on the mirrored weights ``sign(w)|w|^{p−1}`` and
# cannot be carried from one p to another; ask :func:`attnmargin.optim.suggest_lr` for one. The
# rate of steepest descent is a length in its norm.
draw = torch.Generator().manual_seed(0)
x = torch.randn(128, 12, generator=draw)
y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).long()


def network() -> torch.nn.Sequential:
    """Build the same small network every time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))


def closure(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> torch.Tensor:
    """Compute the loss and its gradients."""
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss


def trained(kind: str, steps: int = 200) -> tuple[torch.nn.Sequential, list[float]]:
    """Train at half of the suggested rate, with a cosine schedule; return the losses."""
    model = network()
    optimiser: torch.optim.Optimizer
    if kind.startswith("ℓ"):
        optimiser = am.MirrorDescent(model.parameters(), p=float(kind[1:]))
    else:
        optimiser = am.SteepestDescent(model.parameters(), norm=kind, momentum=0.9)
    rate = am.optim.suggest_lr(model, optimiser, partial(closure, model, optimiser))
    optimiser.param_groups[0]["lr"] = rate / 2
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _ in range(steps):
        losses.append(closure(model, optimiser).item())
        optimiser.step()
        schedule.step()
    print(f"{kind:>8}: suggested rate {rate:.3g}, loss {losses[0]:.3f} → {losses[-1]:.5f}")
    return model, losses


kinds = ["ℓ1.1", "ℓ2", "ℓ3", "spectral", "max"]
runs = {kind: trained(kind) for kind in kinds}

# %%
steps, lines = np.arange(200), []
for k, kind in enumerate(kinds):
    loss = np.array(runs[kind][1])
    lines.append(am.plot.Series(kind="line", name=kind, x=steps, y=loss, style=k, colour=k))
panel = am.plot.Panel(
    title="the loss along training",
    axes=("step", "cross-entropy"),
    series=lines,
    logarithmic=(False, True),
)
losses = am.plot.picture(am.plot.Picture(name="losses", caption="", panels=[panel]))

# %%
# What the norm does to the weights
# ---------------------------------
#
# Mirror descent with p near 1 leaves most weights near zero and lets few grow; p = 3 and sign steps
# ("max") move them all. The picture sorts the weights of the first layer by size.
lines = []
for k, kind in enumerate(kinds):
    first = next(runs[kind][0].parameters())
    weight = first.detach().abs().flatten().sort(descending=True).values
    share = (weight / weight.max()).numpy()
    rank = np.arange(1, len(share) + 1)
    lines.append(am.plot.Series(kind="line", name=kind, x=rank, y=share, style=k, colour=k))
    print(f"{kind:>8}: {(share > 0.1).mean():.0%} of the weights above a tenth of the largest")
panel = am.plot.Panel(
    title="weights of the first layer, by size",
    axes=("rank", "size over the largest"),
    series=lines,
)
weights = am.plot.picture(am.plot.Picture(name="weights", caption="", panels=[panel]))

# %%
# Margins in norms
# ----------------
#
# For a linear classifier the limit is a theorem: normalised steepest descent maximises the
# multiclass margin in its norm (Fan, Schmidt and Thrampoulidis, 2502.04664).
# :func:`attnmargin.class_problem` builds that problem, and :func:`attnmargin.margins` says which
# share of the largest margin any weights reach in each norm, with a certificate. The gallery
# trains such a classifier: :doc:`/gallery/optimiser_margins`.
features = torch.randn(9, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
problem = am.class_problem(features, torch.arange(9) % 3)
found = am.margins(problem, norms=["fro", "spectral", "max", "nuc", "rows"])
table = am.plot.norms(found)

# %%
# How sure is that?
# -----------------
#
# One table knows which norm a method implies, and whether that is proved, for attention or for
# linear classifiers, or conjectured. Nothing is proved for deep networks.
for method, norm in (("gd", None), ("steepest", "spectral"), ("steepest", "max"), ("adam", None)):
    row = am.methods.implication("W", method, norm)
    assert row.norm is not None
    print(f"{method} {norm or ''}: {row.norm.name} norm, {row.evidence} ({row.source})")

# %%
# The same methods train attention, and the prediction says what they select. The verdict stays
# *conjectured* where no theorem covers the method.
data = am.random_data(n=4, T=5, d=6, name="optimiser")
prediction = am.predict(data, method="steepest", norm="spectral", steps=1000)
print(prediction.verdict)
result = am.confirm(prediction, steps=1000)
print(result.explain())
turn = am.plot.alignment(result)

# %%
# Where to go on
# --------------
#
# Rates, parameter groups for real models, the Trainer of transformers, speed: :doc:`/optimizers`.
# Measured on attention: :doc:`/results/N/README`.
