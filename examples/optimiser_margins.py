"""
Three optimisers, three margins
===============================

A linear classifier of three classes is trained by three optimisers until it separates its data.
Each ends near the largest margin, but each in another norm: the norm of its steps.
"""

import numpy as np
import torch

import attnmargin as am

draw = torch.Generator().manual_seed(0)
x = torch.randn(9, 10, generator=draw, dtype=torch.float64)
y = torch.arange(9) % 3
problem = am.class_problem(x, y)
RATES = {"fro": 0.3, "spectral": 0.3, "max": 0.1}  # length of the first step


def trained(norm: str, steps: int = 1000, every: int = 50) -> tuple[list[int], torch.Tensor]:
    """Train from zero by steepest descent in a norm; return steps and weights."""
    model = torch.nn.Linear(10, 3, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    optimiser = am.SteepestDescent(model.parameters(), lr=RATES[norm], norm=norm, exact=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: (k + 1.0) ** -0.5)
    kept = []
    for _ in range(steps):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        scheduler.step()
        kept.append(model.weight.detach().clone())
    return list(range(every, steps + 1, every)), torch.stack(kept[every - 1 :: every])


# %%
# :func:`attnmargin.margins` solves the problem in each norm, and measures W along training.
norms = list(RATES)
lines, final = [], []
for k, norm in enumerate(norms):
    steps, W = trained(norm)
    given = am.margins(problem, W, norms=norms).given
    assert given is not None
    own = given[:, k].numpy()
    final.append(given[-1].tolist())
    lines.append(
        am.plot.Series(kind="line", name=norm, x=np.array(steps), y=own, style=k, colour=k)
    )

print("share of the largest margin in:", "  ".join(f"{norm:>8}" for norm in norms))
for norm, row in zip(norms, final, strict=True):
    print(f"steepest descent in {norm:>8}  : ", "  ".join(f"{share:8.3f}" for share in row))

# %%
# Each row of the table is largest on the diagonal. The curves show the diagonal along training.
panel = am.plot.Panel(
    title="how near each optimiser is to the margin of its norm",
    axes=("training step", "share of the largest margin"),
    series=lines,
    limits=(0.0, 1.05),
)
caption = "Steepest descent in the Frobenius, spectral and max norm, each measured in its own norm."
figure = am.plot.picture(am.plot.Picture(name="optimisers", caption=caption, panels=[panel]))
