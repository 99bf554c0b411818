"""Trajectories of chains, compiled: this module imports the compiler."""

import numpy as np

from attnmargin.base.kernels import Floats, Ints, kernel


@kernel("trajectories of chains", 1, plain=True)
def walk(P: Floats, counts: Floats, last: int, uniform: Floats, found: Ints) -> None:
    """Draw a token in proportion to ``counts · P[last]`` per uniform number; count every one."""
    K = counts.size
    total = np.empty(K)
    for i in range(uniform.size):
        running = 0.0
        for j in range(K):
            running += counts[j] * P[last, j]
            total[j] = running
        goal, last = uniform[i] * running, K - 1
        for j in range(K):
            if total[j] > goal:
                last = j
                break
        counts[last] += 1.0
        found[i] = last
