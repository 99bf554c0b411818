"""Paper A, Section 5.2: do Assumptions B.1 and D imply that training selects the best tokens?"""

from pathlib import Path
from typing import Any

import torch

from attnmargin.base.errors import InputError
from attnmargin.base.files import own_place
from attnmargin.base.progress import Progress
from attnmargin.data.random import random_data
from attnmargin.margin.norms import Frobenius
from attnmargin.prediction.comparison import Comparison, compare
from attnmargin.theory.check import Check, holds
from attnmargin.theory.table import check_theory
from attnmargin.training import train

WIDTHS = (10, 20, 30, 40, 50, 80)


def conjecture_experiment(
    trials: int = 300,
    widths: tuple[int, ...] = WIDTHS,
    *,
    n: int = 5,
    T: int = 5,
    steps: int = 4000,
    seed: int = 0,
    out: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Decide B.1 and D exactly for random instances, train them, and look for a counterexample.

    Deciding D means solving every selection of every instance, ``T^n`` each. Instances come from
    :func:`attnmargin.random_data` and are trained from zero with normalised steps of 0.1.

    Args:
        trials: total number of instances, split evenly over the widths.
        widths: token widths d.
        out: folder for counterexamples, readable by ``attnmargin predict``.
        progress: called with the number of widths done and the total.

    Returns:
        Counts per width: ``trials``, ``B.1``, ``B.1 by average margin``, ``D``, ``both``, and
        ``selected``, the number of ``both`` in which training selects the best tokens; also
        ``counterexamples`` and whether the conjecture ``holds`` here.

    Example:
        >>> from attnmargin.papers.a.conjecture import conjecture_experiment
        >>> record = conjecture_experiment(4, (12,), n=2, T=3)
        >>> record["rows"][0]["both"], record["holds"]
        (4, True)
    """
    each = trials // len(widths)
    if each < 1:
        raise InputError("trials", f"{trials}", f"at least one for each of {len(widths)} widths")
    rows, files = [], []
    for k, d in enumerate(widths):
        data = random_data(n, T, d, trials=each, name=f"A:conjecture d={d}", seed=seed)
        found = compare(data, train(data, steps=steps, record=steps), Frobenius())
        row, wrong = _row(d, check_theory(data), found)
        rows.append(row)
        for trial in wrong:
            name = f"counterexample-d{d}-trial{trial}.npz"
            files.append(name if out is None else str(data[trial].save(own_place(out, name))))
        if progress is not None:
            progress(k + 1, len(widths))
    return {"n": n, "T": T, "rows": rows, "counterexamples": files, "holds": not files}


def _row(d: int, checks: list[Check], result: Comparison) -> tuple[dict[str, Any], list[int]]:
    """Count the outcomes for one width, and list the trials that contradict the conjecture."""
    names = {
        "B.1": "A: Assumption B.1",
        "B.1 by average margin": "A: Assumption B.1, by average margin",
        "D": "A: Assumption D",
        "both": "A: Conjecture of Section 5.2",
    }
    by_label = {check.label: check for check in checks}
    found = {word: holds(by_label[label]) for word, label in names.items()}
    both = found["both"]
    assert result.optimal is not None
    agrees = result.decided & (result.optimal == result.selection.shape[-1])
    row: dict[str, Any] = {"d": d, "trials": len(both)}
    row |= {word: int(count.sum()) for word, count in found.items()}
    row["selected"] = int((both & agrees).sum())
    row["all selected"] = int(agrees.sum())
    row["least correlation"] = _least(result.correlation[both])
    return row, (both & ~agrees).nonzero().flatten().tolist()


def _least(values: torch.Tensor) -> float | None:
    return float(values.min()) if len(values) else None
