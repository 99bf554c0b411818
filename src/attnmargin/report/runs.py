"""Training runs and their SVMs as records, ready for JSON."""

from typing import Any

import numpy as np

from attnmargin.margin.certificate import Status
from attnmargin.prediction.comparison import Comparison
from attnmargin.report.numbers import number


def training_record(found: Comparison) -> dict[str, Any]:
    """Describe the end of every trial, and how well it agrees with its SVM."""
    run, solution = found.run, found.solution
    batch = len(solution.problem.batch_shape)
    return {
        "steps": int(run.steps[-1]),
        "norm of the svm": solution.norm.name,
        "sequences": found.selection.shape[batch:].numel(),
        "results": [_trial(found, index) for index in solution.problem.members()],
        "notes": list(run.notes),
    }


def _trial(found: Comparison, index: tuple[int, ...]) -> dict[str, Any]:
    run, clear = found.run, bool(found.decided[index])
    status = str(np.asarray(found.solution.status, dtype=str)[index])
    counted = found.optimal is not None and clear
    compared = status == Status.OPTIMAL and clear
    return {
        "index": list(index),
        "loss": number(run.loss[-1][index]),
        "probability": number(run.probability[-1][index]),
        "selection": found.selection[index].tolist(),
        "decided": clear,
        "optimal tokens": int(found.optimal[index]) if counted else None,  # type: ignore[index]
        "norm": number(run.W[-1][index].norm()),
        "svm": status,
        "correlation": number(found.correlation[index]) if compared else None,
    }
