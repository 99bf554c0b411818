"""
For theorists: thousands of instances, and a conjecture tested
==============================================================

You have a statement about what softmax attention learns, and today a notebook with a loop over a
conic solver. This page solves a thousand instances exactly, trains and compares them, proves
where their runs end, and tests a conjecture on a grid. Compiling the kernels, once per machine,
takes most of the time.
"""

import time
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import attnmargin as am

# %%
# Solve a thousand instances
# --------------------------
#
# An instance has n sequences of T tokens of width d, a query for each, labels and a head. A
# *batch* of instances is one array with a leading dimension, and one call treats it. Seeds have
# names: the same name gives the same draw on every machine.
data = am.random_data(n=6, T=8, d=10, trials=1000, name="theorist")
best = am.optimal_tokens(data)  # the token of largest score in every sequence
problem = am.token_problem(data.X, data.z, best)

begin = time.perf_counter()
solution = am.solve(problem)
print(f"{time.perf_counter() - begin:.2f} s")
print(solution)

# %%
# This is the attention SVM
#
# .. math:: W_{\mathrm{mm}} = \arg\min \|W\|_F \quad\text{subject to}\quad
#           (x_{i\alpha_i} - x_{it})^\top W z_i \ge 1 \quad\text{for all } t \ne \alpha_i .
#
# The largest relative duality gap of all instances says how far any of the answers can be from
# the truth, whoever computed it. Where an instance is infeasible, the multipliers are a proof of
# that, and the value is NaN: nothing is dropped in silence.
print(f"largest gap {float(solution.certificate.gap.nan_to_num(nan=0.0).max()):.1e}")
print(f"proved infeasible: {int(solution.infeasible.sum())} of 1000")

# %%
# The nuclear norm belongs to gradient descent on (K, Q), ℓp to mirror descent. The rank of a
# Frobenius solution is at most n (paper A, Lemma 1); nuclear solutions have less.
nuclear = am.solve(problem, norm="nuc")
ranks = np.arange(1, 7)
counts = [np.bincount(own.rank.numpy(), minlength=7)[1:7] for own in (solution, nuclear)]


def bars(name: str, colour: int, values: Any) -> am.plot.Series:
    """Return one colour of bars."""
    return am.plot.Series(kind="bar", name=name, x=ranks, y=np.asarray(values), colour=colour)


panel = am.plot.Panel(
    title="rank of the solution",
    axes=("rank of W", "instances"),
    series=[bars("Frobenius", 0, counts[0]), bars("nuclear", 1, counts[1])],
)
caption = "One thousand instances with n = 6, solved in two norms."
ranks_picture = am.plot.picture(am.plot.Picture(name="ranks", caption=caption, panels=[panel]))

# %%
# Train them, and compare
# -----------------------
#
# The theorems say that W grows without bound while its direction converges, slowly.
# :func:`attnmargin.train` keeps the exact direction of the gradient when the softmax has
# saturated, so that a run can go as far as the theorem asks.
few = data[:100]
run = am.train(few, steps=20_000, record=1000)
own = am.solve(am.token_problem(few.X, few.z, run.selection[-1]))
aligned = am.correlation(run.W[-1], own.W)
print(f"correlation with the SVM of what was selected: worst {float(aligned.min()):.5f}")
print(f"largest loss gradient at the end: e^{float(run.log_gradient[-1].max()):.0f}")

# %%
# The band in the picture holds all hundred runs.
course = am.plot.trajectory(run, own)

# %%
# Does training select the best tokens? Not always: that is why the prediction is about *your* run.
agrees = (run.selection[-1] == am.optimal_tokens(few)).all(-1)
print(f"{int(agrees.sum())} of 100 runs end with the tokens of largest score in every sequence")

# %%
# Prove where runs end
# --------------------
#
# :func:`attnmargin.predict` follows each run until a theorem proves its end. The verdict says which
# kind of statement you have; ``since`` is the step from which it holds.
prediction = am.predict(data, lr=0.1)
print(prediction)
since = prediction.since.double().numpy()
proved = np.isfinite(since) & (since >= 0)
print(f"half of the proofs are complete by step {np.median(since[proved]):.0f}")

# %%
# Every assumption and theorem of the papers is a check with the numbers that decided it.
for name in ("A: Theorem 1", "A: Lemma 1", "A: Assumption B.1"):
    print(am.predict(data[0], lr=0.1).check(name))

# %%
# Test a conjecture
# -----------------
#
# Say you conjecture: *if some W separates the best tokens, gradient descent from zero selects
# them.* :func:`attnmargin.sweep` computes a function over a grid. Each point is a file of its
# own; the same call on several machines shares the work, and a stopped sweep goes on where it
# was.


def tested(d: int, trials: int, seed: int) -> dict[str, Any]:
    """Count the instances to which the conjecture applies, and those that refute it."""
    own = am.random_data(5, 5, d, trials, seed=seed)
    best = am.optimal_tokens(own)
    separable = am.solve(am.token_problem(own.X, own.z, best)).optimal
    ended = am.train(own, steps=5000, record=5000).selection[-1]
    return {"applies": separable, "refutes": separable & (ended != best).any(-1)}


widths = [2, 3, 4, 6, 10, 20]
with TemporaryDirectory() as folder:
    table = am.sweep(tested, {"d": widths}, trials=200, out=folder, jobs=1).table()
applies = np.array([table["applies"][table["d"] == d].sum() for d in widths])
refutes = np.array([table["refutes"][table["d"] == d].sum() for d in widths])
for d, k, m in zip(widths, refutes, applies, strict=True):
    print(f"width {d:2}: {int(k):3} counterexamples in {int(m):3} instances")

# %%
# The conjecture is false, and the sweep has the counterexamples. It also shows where to look for a
# theorem: they disappear as tokens get wider.
share = refutes / np.maximum(applies, 1)
error = 1.96 * np.sqrt(share * (1 - share) / np.maximum(applies, 1))
line = am.plot.Series(
    kind="line", name="", x=np.array(widths), y=share, low=share - error, high=share + error
)
panel = am.plot.Panel(
    title="how often the conjecture fails",
    axes=("width of the tokens (d)", "share of instances"),
    series=[line],
)
caption = "Among instances whose best tokens are separable; the band is a 95 % interval."
conjecture = am.plot.picture(am.plot.Picture(name="conjecture", caption=caption, panels=[panel]))

# %%
# A counterexample is worth a look: which selection does the run prefer, and is that proved?
wide = am.random_data(5, 5, 4, 200, name="theorist counterexample")
ended = am.predict(wide, lr=0.1)
odd = (ended.selection != ended.best).any(-1)
separable = am.solve(am.token_problem(wide.X, wide.z, am.optimal_tokens(wide))).optimal
place = int(torch.nonzero(odd & separable)[0])
one = am.predict(wide[place], lr=0.1)
print(f"best {one.best.tolist()}, selected {one.selection.tolist()}: {one.verdict}")
print(one.explain())

# %%
# Where to go on
# --------------
#
# - The four papers' own figures, each with its claims: :doc:`/results/index`, and
#   ``attnmargin reproduce A:fig5 --trials 500``.
# - Which theorem is which function: :doc:`/theory`. What is wrong in the papers: :doc:`/errata`.
# - Proofs of a run's end: :doc:`/guarantees`. Solvers, norms and their speed: :doc:`/solvers`.
