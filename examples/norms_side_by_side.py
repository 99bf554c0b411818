"""
One problem in seven norms
==========================

Each optimiser measures length in its own norm, and so each looks for another margin. Here are the
solutions of one problem in seven norms, and how large the margin of each is in the others.
"""

import attnmargin as am

data = am.random_data(n=6, T=8, d=10, name="norms side by side")
problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
found = am.margins(problem)
print(found)

# %%
# Every row is a solution, every column the norm that measures it. The diagonal is one: each
# solution is the best in its own norm, and certified to be.
figure = am.plot.norms(found)

# %%
# What gradient descent learns belongs to the first row.
run = am.train(data, lr=0.1, steps=20_000, record=20_000)
trained = am.margins(problem, run.W[-1], norms=["fro", "spectral", "max"])
given = trained.given
assert given is not None
for norm, share in zip(trained.norms, given.tolist(), strict=True):
    print(
        f"W of gradient descent reaches {share:.4f} of the largest margin in the {norm.name} norm"
    )
