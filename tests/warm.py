"""Compile the kernels once, before workers that would each compile them: ``python -m tests.warm``.

The nuclear walk is compiled by a second program, once the Frobenius solver that it calls is there.
"""

import subprocess
import sys

import attnmargin as am

if __name__ == "__main__":
    data = am.random_data(4, 5, 6, trials=3, name="warm")
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    if sys.argv[1:] == ["nuclear"]:
        am.solve(problem, "nuc")
    else:
        am.solve(problem)
        nuclear = subprocess.Popen([sys.executable, "-m", "tests.warm", "nuclear"])
        am.solve(problem, 3.0)
        am.theory.guarantee(data, am.train(data, steps=2).W[-1])
        am.selections.local_selections(am.random_data(2, 2, 2, name="warm"))
        am.train(data, "KQ", steps=2)
        am.train(data, method="mirror", p=3.0, steps=2)
        sys.exit(nuclear.wait())
