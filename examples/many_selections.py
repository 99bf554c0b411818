"""
All 3,125 selections of one instance
====================================

Five sequences of five tokens can be selected from in 3,125 ways (paper A, Figures 2 and 5). One
call solves them all, and says which of them attention can make.
"""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch

import attnmargin as am

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def main() -> "Figure":
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
    order = solution.margin.nan_to_num(nan=0.0).sort(descending=True).values.numpy()
    line = am.plot.Series(kind="line", name="", x=np.arange(1, len(order) + 1), y=order)
    panel = am.plot.Panel(
        title="how many selections have a margin", axes=("selection, by its margin", "margin"),
        series=[line],
    )  # fmt: skip
    caption = "Margin 0: no W separates the selected tokens."
    return am.plot.picture(am.plot.Picture(name="margins", caption=caption, panels=[panel]))


if __name__ == "__main__":
    figure = main()
