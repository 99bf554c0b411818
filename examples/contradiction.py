"""
No weights can do this: the reason in words
===========================================

Some selections are impossible. The solver then returns a proof instead of a matrix, and the proof
names the sequences and tokens that contradict each other.
"""

import numpy as np

import attnmargin as am

X = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]
z = [[1.0, 0.5], [1.0, 0.5], [1.0, 0.5]]
solution = am.solve(am.token_problem(X, z, [0, 0, 0]))
print(solution.status)
try:
    solution.raise_for_status()
except am.InfeasibleError as error:
    print(error)

# %%
# How often does that happen? Wide tokens can be separated in any way, narrow ones cannot. One call
# solves 400 random selections for each width; every answer is proved.
widths = np.arange(1, 8)
shares = []
for d in widths:
    data = am.random_data(n=6, T=4, d=int(d), trials=400, name="contradiction")
    draw = np.random.default_rng(0).integers(0, 4, (400, 6))
    found = am.solve(am.token_problem(data.X, data.z, draw))
    shares.append(float(found.infeasible.double().mean()))
    print(f"width {d:2}: {shares[-1]:6.1%} impossible")

figure = am.plot.picture(
    am.plot.Picture(
        name="contradiction",
        caption="Share of random selections of 6 sequences with 4 tokens that no W can make.",
        panels=[
            am.plot.Panel(
                title="how often a selection is impossible",
                axes=("width of the tokens (d)", "share of selections"),
                series=[
                    am.plot.Series(kind="line", name="", x=widths, y=np.array(shares), marker="o")
                ],
            )
        ],
    )
)
