"""Frobenius norm: ours against cvxpy, DAQP and moreau, side by side in one run.

python -m benchmarks.frobenius [--batch 200] [--repeats 15]
"""

from benchmarks import rivals
from benchmarks.harness import Contest, run

SHAPES = [(5, 5, 5), (6, 8, 10), (5, 5, 20), (20, 5, 40)]
METHODS = {
    "attnmargin": rivals.ours,
    "attnmargin lockstep": rivals.ours_lockstep,
    "DAQP in a loop": rivals.daqp_in_a_loop,
    "moreau batched": rivals.moreau_batched,
    "cvxpy as in the papers": rivals.cvxpy_as_in_the_papers(),
}
# cvxpy needs tens to hundreds of milliseconds for one instance: a few are enough.
FEW = {"cvxpy as in the papers": 3}

if __name__ == "__main__":
    contests = [Contest("fro", shape, METHODS, FEW) for shape in SHAPES]
    run(contests, "frobenius", __doc__)
