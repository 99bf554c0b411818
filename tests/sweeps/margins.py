"""A computation with numbers of every kind, for sweeps and for the programs that tests start."""

import sys
from typing import Any

import numpy as np

import attnmargin as am


def margins(d: int, lr: float, trials: int, seed: int) -> dict[str, Any]:
    """Solve and train ``trials`` small instances."""
    data = am.random_data(3, 4, d, trials, name="sweeps", seed=seed)
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data), data.mask))
    run = am.train(data, lr=lr, steps=20, record=20)
    return {"margin": solution.margin, "loss": run.loss[-1], "status": solution.status}


def same(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Check that two tables are equal bit for bit."""
    assert list(one) == list(two)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


GRID = {"d": [4, 6, 8, 10, 12, 14, 16, 18], "lr": [0.1, 0.5]}
TRIALS, SEED = 3, 5

if __name__ == "__main__":  # python -m tests.sweeps.margins ENGINE FOLDER
    name, folder = sys.argv[1:]
    from tests.sweeps import margins as own

    am.sweep(own.margins, GRID, TRIALS, SEED, out=folder, engine=am.sweeps.Engine(name, 2))
