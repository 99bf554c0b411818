"""Iteration limits, tolerances and step rules shared by all interior-point methods."""

ITERATIONS, CAREFUL_ITERATIONS = 60, 300
# Iterations without a smaller gap after which nothing better is to be expected.
PATIENCE = 20
# A problem is finished at the first relative gap, or at the second once it stops improving; the
# certificate requires 1e-9.
ENOUGH, GOOD = 1e-12, 6e-10
TINY = 1e-300
# Relative regularisation of the diagonal of a Schur matrix.
REGULAR = 1e-15
# A residual of V below this share of the largest multiplier is rounding.
NOISE = 1e-13
# Corrections of Newton's step by what its rows still miss.
REFINEMENTS = 3
# Share of a long step that a careful one takes.
CAREFUL_PART = 0.7
# Share of the distance to the boundary that a step may take.
LP_STAY_INSIDE, NUCLEAR_STAY_INSIDE = 0.995, 0.99
# Lower clamp of the ratio of μ after the predictor to μ before, from which the corrector aims.
LP_LEAST_RATIO, NUCLEAR_LEAST_RATIO = 1e-4, 1e-3
# Least share of μ to aim at in careful steps and while p moves.
LEAST_CENTRED = 0.3
# Cap on the relative weight of entries of W near zero (ℓp).
LARGEST_WEIGHT = 1e8


def power_at(first: float, goal: float, k: int, careful: bool) -> float:
    """Return p in iteration k: near ``first`` initially, then by constant factors to ``goal``.

    The larger of p and its conjugate moves. From 2 it can jump a little.
    """
    rate, steps = (1.04, max(k - 4, 0)) if careful else (1.15, max(k - 2, 0))
    large, jump = goal >= 2.0, 2.5 if goal >= 2.0 else 3.0
    begin, end = (first, goal) if large else (first / (first - 1.0), goal / (goal - 1.0))
    if begin <= end:
        power = max(begin, jump) * rate**steps
        done = power >= end
    else:
        power = begin / rate**steps
        done = power <= end
    if done:
        return goal
    return power if large else power / (power - 1.0)
