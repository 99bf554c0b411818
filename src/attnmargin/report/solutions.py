"""Solutions and their certificates as records, ready for JSON."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.base.errors import InputError
from attnmargin.base.npz import read_npz
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.alternatives import uniqueness
from attnmargin.margin.certificate import Certificate, Status, certify
from attnmargin.margin.explain import explain_infeasible, row_words
from attnmargin.margin.problem import RowNames
from attnmargin.margin.solution import Solution
from attnmargin.report.numbers import number
from attnmargin.selections.exact import exact_locality


def _proof_numbers(certificate: Certificate, index: tuple[int, ...]) -> dict[str, Any]:
    names = ("gap", "primal", "dual")
    return {name: number(getattr(certificate, name)[index]) for name in names}


def _status(statuses: Any, index: tuple[int, ...]) -> Status:
    return Status(statuses[index] if index else str(statuses))


def _support(solution: Solution, index: tuple[int, ...]) -> list[dict[str, Any]]:
    """Describe the support rows of one problem: names, requirement and multiplier of each."""
    member, dual = solution.problem[index], solution.dual[index]
    rows = solution.support[index].nonzero().flatten().tolist()
    shape = (*solution.problem.batch_shape, solution.problem.M)
    names = {
        field.name: getattr(solution.problem.names, field.name).expand(shape)[index][rows].tolist()
        for field in fields(RowNames)
    }
    return [
        {"row": row}
        | {name: values[i] for name, values in names.items()}
        | {"demand": row_words(member, row), "multiplier": number(dual[row])}
        for i, row in enumerate(rows)
    ]


def solution_record(solution: Solution) -> dict[str, Any]:
    """Describe a solution, all but its arrays, ready for JSON."""
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
        "rows": solution.problem.M + solution.outside,
        "outside": solution.outside,
        "optimal": sum(result["status"] == Status.OPTIMAL for result in results),
        "settled": sum(result["status"] in (Status.OPTIMAL, Status.LOCAL) for result in results),
        "results": results,
    }


def verification_record(
    file: Path, exact: bool = False, data: AttentionData | None = None
) -> dict[str, Any]:
    """Compare what the numbers in a solution file prove with what the file claims.

    Exactly, if asked; with data, also whether the selections are locally optimal.
    """
    solution = Solution.load(file)
    if exact:
        proof = certify(solution.problem, solution.norm, solution.W, solution.dual, exact=True)
        solution = replace(solution, certificate=proof)
    local = None if data is None else exact_locality(data, solution)
    claimed = read_npz(file, needs=("status",))["status"]
    if claimed.shape != tuple(solution.problem.batch_shape):
        needs = f"one status per problem, {tuple(solution.problem.batch_shape)}"
        raise InputError("status", f"shape {claimed.shape}", needs)
    results = []
    for place, index in enumerate(solution.problem.members()):
        proved = _status(solution.status, index)
        claim = str(claimed[index])
        results.append(
            {
                "index": list(index),
                "claimed": claim,
                "proved": str(proved),
                **_proof_numbers(solution.certificate, index),
                "feasible": bool(solution.feasible[index]),
                "holds": claim == proved != Status.INACCURATE,
            }
            | ({} if local is None else {"local": str(local[place])})
        )
    holds = all(result["holds"] for result in results)
    head = {"file": str(file), "norm": solution.norm.name, "exact": exact, "holds": holds}
    if solution.outside:
        head["outside"] = _outside_words(solution)
    return head | {"results": results}


def _outside_words(solution: Solution) -> str:
    """Say what the file of a solution that leaves rows out can prove, and what it cannot."""
    built, outside = solution.problem.M, solution.outside
    words = f"{built:,} of {built + outside:,}"
    if bool(solution.infeasible.all()):
        return f"{words}, which contradict each other, whatever the others are"
    return f"{words}; that W satisfies the other {outside:,} was checked when the file was made"
