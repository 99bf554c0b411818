"""Paper F, "Max-Margin Token Selection in Attention Mechanism", as checks."""

import torch

from attnmargin.base.arrays import Array
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import label_problem
from attnmargin.margin.prompt import prompt_problem
from attnmargin.solvers.entry import solve
from attnmargin.theory.check import Check, outcome


def check_prompt(data: AttentionData, selection: Array) -> list[Check]:
    """Check the statements of paper F (Tarzanagh et al., 2306.13596) for a selection.

    Args:
        data: as :func:`attnmargin.theory.prompt_data` makes it: tokens are keys.
        selection: int ``(*B, n)``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 3, 8, name="docs")
        >>> for check in am.theory.check_prompt(data, am.optimal_tokens(data)):
        ...     print(f"{check.label}: {check.outcome}")
        F: Separation: holds
        F: Relaxed separation: holds
        F: Every sequence is needed: holds
    """
    assert data.y is not None
    whole = solve(prompt_problem(data.X, selection, mask=data.mask))
    labels = solve(label_problem(data.X, data.y, selection, data.mask))
    relaxed = solve(prompt_problem(data.X, selection, labels.support, data.mask))
    needed = labels.support.sum(-1).double()
    known = torch.as_tensor(labels.optimal)
    return [
        Check("F", "Separation", "Some p attends to the selected tokens alone.",
              outcome(whole.optimal), {"margin of p": whole.margin}),
        Check("F", "Relaxed separation", "Some p does so for the sequences that support the head, "
              "and ranks the selected tokens first in the others: joint training ends there.",
              outcome(relaxed.optimal, known), {"margin of p": relaxed.margin}),
        Check("F", "Every sequence is needed", "All sequences support the margin of the head, so "
              "that both problems are one.", outcome(labels.support.all(-1), known),
              {"sequences that support": needed, "label margin": labels.margin}),
    ]  # fmt: skip
