"""What ``attnmargin train`` reports: the run, and the SVM of what it selects."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from attnmargin.attention.score import optimal_tokens
from attnmargin.cli.solutions import number, short
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.margin.certificate import Status
from attnmargin.solvers import solve
from attnmargin.training import Trajectory
from attnmargin.training.measures import correlation, decided

_MOST_LINES = 20


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(words)
        yield lambda k, steps: bar.update(task, completed=k, total=max(steps, 1))


def training_record(data: AttentionData, run: Trajectory, norm: str | float) -> dict[str, Any]:
    """The end of every trial, beside the SVM of the tokens that it selected, ready for JSON."""
    W, selection = run.W[-1], run.selection[-1]
    clear = decided(data, W)
    solution = solve(token_problem(data.X, data.z, selection, data.mask), norm)
    aligned = correlation(W, solution.W.nan_to_num())
    status = np.asarray(solution.status, dtype=str)
    # A trained head has scores of its own.
    best = optimal_tokens(data) if data.v is not None and run.heads is None else None
    results = [
        {
            "index": list(index),
            "loss": number(run.loss[-1][index]),
            "probability": number(run.probability[-1][index]),
            "selection": selection[index].tolist(),
            "decided": bool(clear[index]),
            "optimal tokens": int((selection == best)[index].sum())
            if best is not None and bool(clear[index])
            else None,
            "norm": number(W[index].norm()),
            "svm": str(status[index]),
            "correlation": number(aligned[index])
            if status[index] == Status.OPTIMAL and bool(clear[index])
            else None,
        }
        for index in solution.problem.members()
    ]
    return {
        "steps": int(run.steps[-1]),
        "norm of the svm": solution.norm.name,
        "sequences": selection.shape[len(data.batch_shape) :].numel(),
        "results": results,
        "notes": list(run.notes),
    }


def print_training(record: dict[str, Any]) -> None:
    """A table for people."""
    console = Console()
    table = Table("trial", "loss", "largest softmax", "optimal tokens", "‖W‖", "svm", "correlation")
    for result in record["results"][:_MOST_LINES]:
        aligned, count = result["correlation"], result["optimal tokens"]
        table.add_row(
            ", ".join(map(str, result["index"])) or "–",
            short(result["loss"], ".6g"),
            short(result["probability"], ".6f"),
            "–" if count is None else f"{count} of {record['sequences']}",
            short(result["norm"], ".4g"),
            result["svm"],
            short(aligned, ".6f"),
        )
    console.print(table)
    if len(record["results"]) > _MOST_LINES:
        console.print(f"… and {len(record['results']) - _MOST_LINES} more")
    found = [r["correlation"] for r in record["results"] if r["correlation"] is not None]
    if found:
        words = (
            f"norm {record['norm of the svm']}: mean {np.mean(found):.6f}, worst {min(found):.6f}"
        )
        console.print(f"correlation with the SVM of the selected tokens, {words}")
    nothing = sum(not result["decided"] for result in record["results"])
    if nothing:
        words = f"in {nothing} of {len(record['results'])} trials nothing is selected"
        console.print(f"{words}: in some sequence the most likely tokens are equally likely")
    for note in record["notes"]:
        console.print(note, soft_wrap=True)
    if record["out"]:
        console.print(f"saved: {record['out']}", soft_wrap=True)
