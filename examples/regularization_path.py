"""
The regularisation path ends in the SVM
=======================================

Let W be no longer than R, and minimise the loss. As R grows, the best W turns to the direction of
the attention SVM (paper A, Theorem 2; paper B, Theorem 1 for ℓp norms).
"""

import numpy as np

import attnmargin as am

data = am.random_data(n=4, T=5, d=6, name="regularisation path")
problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
radii = np.logspace(0, 3, 13)

# %%
# Two paths, each within balls of its own norm. What they end in differs, and each ends in the
# solution of its norm.
lines = []
for p, style in ((2.0, 0), (3.0, 1)):
    path = am.regularization_path(data, radii.tolist(), p=p)
    solution = am.solve(problem, p)
    off = 1.0 - am.correlation(path.W, solution.W)
    print(f"p = {p:g}: distance from the solution {float(off[-1]):.1e} at R = 1000")
    lines.append(
        am.plot.Series(
            kind="line",
            name=f"ℓ{p:g}",
            x=radii,
            y=off.clamp_min(1e-16).numpy(),
            style=style,
            colour=style,
        )
    )

figure = am.plot.picture(
    am.plot.Picture(
        name="path",
        caption="The larger the ball, the nearer its best weights are to the direction of the SVM.",
        panels=[
            am.plot.Panel(
                title="how far the best weights are from the SVM",
                axes=("radius of the ball (R)", "distance (1 − correlation)"),
                series=lines,
                logarithmic=(True, True),
            )
        ],
    )
)
