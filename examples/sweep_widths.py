"""
A sweep: wider tokens have larger margins
=========================================

:func:`attnmargin.sweep` computes a function over a grid and saves every point as soon as it is
done. A sweep that was stopped goes on where it was; machines can share one.
"""

import tempfile

import numpy as np

import attnmargin as am


def margin(d: int, T: int, trials: int, seed: int) -> dict[str, object]:
    """Solve random instances of one shape."""
    data = am.random_data(5, T, d, trials, seed=seed)
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
    return {"margin": solution.margin, "feasible": solution.optimal}


# %%
# Fifteen points of 200 instances each. Every row of the table is one instance.
widths, lengths = [4, 6, 10, 16, 24], [3, 6, 12]
with tempfile.TemporaryDirectory() as folder:
    found = am.sweep(margin, {"d": widths, "T": lengths}, trials=200, out=folder, jobs=1)
    table = found.table()
print(found)
print(f"{len(table['margin']):,} rows: {', '.join(table)}")

# %%
# Plot data are plain arrays: a series per line, a panel per pair of axes.
lines = []
for k, T in enumerate(lengths):
    rows = [table["margin"][(table["d"] == d) & (table["T"] == T)] for d in widths]
    low, middle, high = np.array([np.nanquantile(row, [0.25, 0.5, 0.75]) for row in rows]).T
    lines.append(
        am.plot.Series(
            kind="line",
            name=f"{T} tokens",
            x=np.array(widths),
            y=middle,
            low=low,
            high=high,
            colour=k,
            style=k,
        )
    )
panel = am.plot.Panel(
    title="the margin of the best tokens", axes=("width of the tokens (d)", "margin"), series=lines
)
caption = "Medians of 200 instances with 5 sequences; bands hold the middle half of them."
figure = am.plot.picture(am.plot.Picture(name="sweep", caption=caption, panels=[panel]))
