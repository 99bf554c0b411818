"""What the command line reads and prints: records for programs, tables for people."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnmargin.attention.score import optimal_tokens, tied_tokens
from attnmargin.base.errors import InputError
from attnmargin.base.files import read_npz
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.alternatives import Uniqueness, uniqueness
from attnmargin.margin.builders import token_problem
from attnmargin.margin.certificate import Certificate, Status
from attnmargin.margin.explain import explain_infeasible, row_words
from attnmargin.margin.problem import MarginProblem, RowNames
from attnmargin.margin.solution import Solution

_MOST_LINES = 20
_STYLE = {
    Status.OPTIMAL: "green",
    Status.INFEASIBLE: "red",
    Status.INACCURATE: "yellow",
    Status.LOCAL: "cyan",
}


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """A spinner on standard error, if that is a terminal."""
    with Console(stderr=True).status(words):
        yield


def read_problem(file: Path, select: str) -> MarginProblem:
    """The problem in a file: saved rows, or data with a selection."""
    arrays = read_npz(file)
    if "left" in arrays:
        if select != "opt":
            raise InputError("--select", select, "a data file; this one holds a finished problem")
        return MarginProblem.load(file)
    data = AttentionData.load(file)
    return token_problem(data.X, data.z, _selection(data, select), data.mask)


def _selection(data: AttentionData, select: str) -> Any:
    if select != "opt":
        return read_selection(Path(select))
    tied = tied_tokens(data)
    if bool(tied.any()):
        place = tuple(int(i) for i in tied.nonzero()[0])
        needs = "unique optimal tokens, or a selection given by --select FILE"
        raise InputError("--select", f"opt, but tokens tie in sequence {place[-1]}", needs)
    return optimal_tokens(data)


def read_selection(path: Path) -> Any:
    """A selection from ``.npy``, ``.npz`` (array ``selection``) or ``.json``."""
    if not path.is_file():
        raise InputError("--select", f"{path}, which does not exist", "opt or a file")
    try:
        if path.suffix == ".json":
            return json.loads(path.read_text(encoding="utf-8"))
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, RecursionError) as error:
        raise InputError("--select", f"{path} ({error})", "a plain array of tokens") from error
    return read_npz(path, needs=("selection",))["selection"]


def number(x: torch.Tensor) -> float | None:
    """A finite number, or nothing: JSON has no infinity."""
    value = float(x)
    return value if math.isfinite(value) else None


def _proof_numbers(certificate: Certificate, index: tuple[int, ...]) -> dict[str, Any]:
    names = ("gap", "primal", "dual")
    return {name: number(getattr(certificate, name)[index]) for name in names}


def _status(statuses: Any, index: tuple[int, ...]) -> Status:
    return Status(statuses[index] if index else str(statuses))


def _support(solution: Solution, index: tuple[int, ...]) -> list[dict[str, int]]:
    """The support rows of one problem, each with its names."""
    rows = solution.support[index].nonzero().flatten()
    shape = (*solution.problem.batch_shape, solution.problem.M)
    names = {
        field.name: getattr(solution.problem.names, field.name).expand(shape)[index][rows].tolist()
        for field in fields(RowNames)
    }
    return [
        {"row": row} | {name: values[i] for name, values in names.items()}
        for i, row in enumerate(rows.tolist())
    ]


def solution_record(solution: Solution) -> dict[str, Any]:
    """Everything about a solution but the arrays, ready for JSON."""
    results = []
    unique = np.asarray(uniqueness(solution))
    for index in solution.problem.members():
        status = _status(solution.status, index)
        result = {
            "index": list(index),
            "status": str(status),
            "value": number(solution.value[index]),
            "margin": number(solution.margin[index]),
            **_proof_numbers(solution.certificate, index),
            "support": _support(solution, index),
            "iterations": int(solution.iterations[index]),
            "rank": int(solution.rank[index]) if status != Status.INFEASIBLE else None,
            "uniqueness": str(unique[index]),
        }
        if status == Status.INFEASIBLE:
            member = solution.problem[index]
            result["why"] = explain_infeasible(member, solution.dual[index])
        results.append(result)
    return {
        "norm": solution.norm.name,
        "problems": len(results),
        "rows": solution.problem.M,
        "optimal": sum(result["status"] == Status.OPTIMAL for result in results),
        "settled": sum(result["status"] in (Status.OPTIMAL, Status.LOCAL) for result in results),
        "results": results,
    }


def verification_record(file: Path) -> dict[str, Any]:
    """What the numbers of a solution file prove, beside what the file claims."""
    solution = Solution.load(file)
    claimed = read_npz(file, needs=("status",))["status"]
    if claimed.shape != tuple(solution.problem.batch_shape):
        needs = f"one status per problem, {tuple(solution.problem.batch_shape)}"
        raise InputError("status", f"shape {claimed.shape}", needs)
    results = []
    for index in solution.problem.members():
        proved = _status(solution.status, index)
        claim = str(claimed[index])
        results.append(
            {
                "index": list(index),
                "claimed": claim,
                "proved": str(proved),
                **_proof_numbers(solution.certificate, index),
                "holds": claim == proved != Status.INACCURATE,
            }
        )
    holds = all(result["holds"] for result in results)
    return {"file": str(file), "norm": solution.norm.name, "holds": holds, "results": results}


def print_json(record: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(record, allow_nan=False, ensure_ascii=False))


def short(value: float | None, digits: str) -> str:
    return "–" if value is None else format(value, digits)


def _colour(status: str) -> str:
    style = _STYLE.get(Status(status), "") if status in set(Status) else "red"
    return f"[{style}]{status}[/{style}]"


def _label(index: list[int]) -> str:
    return ", ".join(map(str, index)) or "–"


def _rest(console: Console, results: list[dict[str, Any]], key: str) -> None:
    if len(results) > _MOST_LINES:
        counts = {s: sum(r[key] == s for r in results[_MOST_LINES:]) for s in Status}
        listed = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        console.print(f"… and {len(results) - _MOST_LINES} more: {listed}")


def print_solution(solution: Solution, record: dict[str, Any]) -> None:
    """Tables for people: every problem, and the support of a single one."""
    console = Console()
    table = Table("problem", "status", "‖W‖", "margin", "gap", "rank", "support", "steps")
    table.columns[1].no_wrap = True
    for result in record["results"][:_MOST_LINES]:
        table.add_row(
            _label(result["index"]),
            _colour(result["status"]),
            short(result["value"], ".4g"),
            short(result["margin"], ".4g"),
            short(result["gap"], ".1e"),
            short(result["rank"], "d"),
            str(len(result["support"])),
            str(result["iterations"]),
        )
    console.print(table)
    _rest(console, record["results"], "status")
    several = [r["uniqueness"] == Uniqueness.NOT_UNIQUE for r in record["results"]]
    if any(several):
        console.print(
            f"{sum(several)} of {len(several)}: other W have the same norm", soft_wrap=True
        )
    for result in record["results"][:_MOST_LINES]:
        if "why" in result:
            prefix = f"problem {_label(result['index'])}: " if result["index"] else ""
            console.print(f"{prefix}{result['why']}", soft_wrap=True)
    if record["problems"] == 1 and record["optimal"] == 1:
        _print_support(console, solution)
    if record["out"]:
        console.print(f"saved: {record['out']}", soft_wrap=True)


def _print_support(console: Console, solution: Solution) -> None:
    """The rows that hold with equality: who guards each selection."""
    problem = solution.problem[(0,) * len(solution.problem.batch_shape)]
    support = solution.support.reshape(-1).nonzero().flatten().tolist()
    multiplier = solution.dual.reshape(-1)
    table = Table("support row", "what it demands", "multiplier")
    for row in support[:_MOST_LINES]:
        table.add_row(str(row), row_words(problem, row), short(float(multiplier[row]), ".3g"))
    if support:
        console.print(table)
    if len(support) > _MOST_LINES:
        console.print(f"… and {len(support) - _MOST_LINES} more support rows")


def print_verification(record: dict[str, Any]) -> None:
    """A table for people: claimed and proved, with the numbers of the proof."""
    console = Console()
    table = Table("problem", "claimed", "proved", "gap", "primal", "dual", "holds")
    for result in record["results"][:_MOST_LINES]:
        table.add_row(
            _label(result["index"]),
            escape(result["claimed"]),
            _colour(result["proved"]),
            *(short(result[name], ".1e") for name in ("gap", "primal", "dual")),
            "yes" if result["holds"] else "[red]no[/red]",
        )
    console.print(table)
    _rest(console, record["results"], "proved")
    wrong = sum(not result["holds"] for result in record["results"])
    total = len(record["results"])
    verdict = "every certificate holds" if not wrong else f"{wrong} of {total} do not hold"
    console.print(f"{verdict} ({record['norm']} norm, {total} problem{'s' * (total != 1)})")
