"""Solve all 3125 selections of one instance in one call: which can attention select at all?

The instance has five sequences of five tokens (paper A, Figures 2 and 5). Run it:

    python examples/many_selections.py
"""

from itertools import product

import torch

import attnmargin as am


def main() -> None:
    data = am.random_data(n=5, T=5, d=2, name="A:fig5", min_gap=0.1)
    selections = torch.tensor(list(product(range(5), repeat=5)))  # (3125, 5)
    solution = am.solve(am.token_problem(data.X, data.z, selections))
    feasible = torch.from_numpy(solution.status == "optimal")
    print(f"{int(feasible.sum())} of {len(selections)} selections are separable")
    best = int(solution.margin.nan_to_num(nan=0.0).argmax())
    print(f"largest margin {float(solution.margin[best]):.4f}: tokens {selections[best].tolist()}")
    optimal = am.optimal_tokens(data)
    mine = int((selections == optimal).all(-1).nonzero())
    print(f"optimal tokens {optimal.tolist()}: {solution.status[mine]}")
    if not feasible[mine]:
        try:
            am.solve(am.token_problem(data.X, data.z, optimal)).raise_for_status()
        except am.InfeasibleError as error:
            print(error)


if __name__ == "__main__":
    main()
