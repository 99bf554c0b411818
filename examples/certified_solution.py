"""
Solve an attention SVM, and check the proof
===========================================

Six sequences of eight tokens, each with a query. Which matrix W is the shortest one that lets the
token of largest score win in every sequence, by a margin of one? The solver answers with a
certificate; the certificate does not trust the solver.
"""

import attnmargin as am

data = am.random_data(n=6, T=8, d=10, name="certified solution")
problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
solution = am.solve(problem)
print(solution)

# %%
# The certificate brackets the length of every W that satisfies the rows. The multipliers prove
# that none is shorter than the lower end; W itself shows that the upper end is reached.
certificate = solution.certificate
print(f"no W is shorter than {float(certificate.lower):.12f}")
print(f"this one has length  {float(certificate.upper):.12f}")

# %%
# The picture shows all 42 rows. A row of margin one is a *support* row: its token is a closest
# rival of the selected token.
figure = am.plot.margins(solution)

# %%
# Numbers of any origin can be certified. Here W is rounded to three digits, as one might copy it
# from a paper: the proof then leaves a gap, and says how wide it is.
rounded = am.certify(problem, "fro", solution.W.round(decimals=3), solution.dual)
print(
    f"gap of the solver {float(certificate.gap):.1e}, of rounded numbers {float(rounded.gap):.1e}"
)
