"""Paper H, "Implicit Bias and Fast Convergence Rates for Self-Attention", as checks."""

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.arrays import Array
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.solvers.entry import solve
from attnmargin.theory.check import Check, outcome

# A multiplier above this share of the largest pulls.
_PULLS = 1e-9


def check_rates(data: AttentionData, selection: Array | None = None) -> list[Check]:
    """Check what the rates of paper H (Vasudeva, Deora, Thrampoulidis, 2402.05738) rest on.

    If every tight row has a positive multiplier, ``W = R W_mm + O(1)``: the distance to the
    direction of W_mm falls like 1/‖W‖, and attention becomes one-hot like ``e^{−‖W‖/‖W_mm‖}``.

    Args:
        selection: int ``(*B, n)``; the tokens of largest score by default.

    Example:
        >>> import attnmargin as am
        >>> for check in am.theory.check_rates(am.random_data(3, 3, 8, name="docs")):
        ...     print(f"{check.label}: {check.outcome}")
        H: Separation: holds
        H: Strict support: holds
    """
    chosen = optimal_tokens(data) if selection is None else selection
    solution = solve(token_problem(data.X, data.z, chosen, data.mask))
    size = solution.dual.abs().amax(-1, keepdim=True)
    strict = ((solution.dual.abs() > _PULLS * size) | ~solution.support).all(-1)
    return [
        Check("H", "Separation", "Some W attends to the selected tokens alone.",
              outcome(solution.optimal), {"margin of W": solution.margin}),
        Check("H", "Strict support", "Every tight row pulls: the part of W beside its direction "
              "stays bounded.", outcome(strict, solution.optimal),
              {"support rows": solution.support.sum(-1).double()}),
    ]  # fmt: skip
