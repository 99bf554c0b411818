"""Attention SVMs in all norms: feasible, infeasible, degenerate, with equalities, large."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import attnmargin as am
from tests.campaigns.everywhere.place import Answers, Place, named

NORMS: tuple[str | float, ...] = ("fro", "nuc", "spectral", "max", "sum", "rows", "columns", 1.25,
                                  1.75, 3.0)  # fmt: skip
_CERTIFIED = 1e-9


def optimal(data: am.AttentionData) -> am.MarginProblem:
    """Return the attention SVM of the best tokens."""
    return am.token_problem(data.X, data.z, am.optimal_tokens(data), data.mask)


def feasible(place: Place) -> Answers:
    """Solve problems that are feasible, in every norm."""
    return _solved(place, "feasible")


def mixed(place: Place) -> Answers:
    """Solve problems of which about half are infeasible."""
    return _solved(place, "mixed")


def degenerate(place: Place) -> Answers:
    """Solve problems of small whole numbers."""
    return _solved(place, "degenerate")


def equalities(place: Place) -> Answers:
    """Solve problems that select sets."""
    return _solved(place, "equalities")


def large(place: Place) -> Answers:
    """Solve one problem beyond the size from which large methods take over."""
    if place.small:
        return {}
    problem = optimal(am.random_data(40, 16, 16, trials=1, name="everywhere"))
    found: Answers = {}
    for norm in ("fro", "nuc", "max", 3.0):
        found |= named(f"solve large {norm}", place.asked(_solver(norm), problem))
    return found


def margins(place: Place) -> Answers:
    """Measure the solutions of some norms in the others."""
    norms: list[str | float | am.Norm] = ["fro", "nuc", "max", 3.0]

    def ask(problem: am.MarginProblem) -> dict[str, Any]:
        found = am.margins(problem, norms=norms)
        # Solutions in the largest entry and in the trace norm need not be unique.
        return {"best": found.best, "ratios of fro": found.ratios[..., 0, :],
                "ratios of 3": found.ratios[..., 3, :]}  # fmt: skip

    return named("margins", place.asked(ask, PROBLEMS["feasible"](place.trials)))


def classes(place: Place) -> Answers:
    """Solve multiclass problems."""
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((place.trials, 12, 8)))
    y = torch.from_numpy(rng.integers(0, 3, (place.trials, 12)))
    found: Answers = {}
    for norm in ("fro", "spectral", "max", "nuc"):

        def ask(x: Any, y: Any, norm: str = norm) -> dict[str, Any]:
            return _solver(norm)(am.class_problem(x, y, 3))

        found |= named(f"classes {norm}", place.asked(ask, x, y))
    return found


def _solved(place: Place, kind: str) -> Answers:
    found: Answers = {}
    for norm in NORMS:
        answers = place.asked(_solver(norm), PROBLEMS[kind](place.trials))
        found |= named(f"solve {kind} {norm}", answers)
    return found


def _solver(norm: str | float) -> Callable[[am.MarginProblem], dict[str, Any]]:
    def solve(problem: am.MarginProblem) -> dict[str, Any]:
        solution = am.solve(problem, norm)
        answers = {"status": np.atleast_1d(solution.status), "value": solution.value,
                   "certified": ~(solution.certificate.gap > _CERTIFIED)}  # fmt: skip
        # A contradiction may have several proofs, of other rows; the status says that one holds.
        support = solution.support & ~solution.infeasible.unsqueeze(-1)
        unique = {"W": solution.W, "support": support} if norm == "fro" else {}
        return answers | unique

    return solve


def _feasible(trials: int) -> am.MarginProblem:
    return optimal(am.random_data(4, 5, 8, trials=trials, name="everywhere"))


def _mixed(trials: int) -> am.MarginProblem:
    """Return problems of which about half are infeasible."""
    return optimal(am.random_data(5, 4, 3, trials=trials, name="everywhere"))


def _degenerate(trials: int) -> am.MarginProblem:
    """Return problems of small whole numbers: equal tokens, equal rows, ties."""
    rng = np.random.default_rng(2)
    X = torch.from_numpy(rng.integers(-1, 2, (trials, 3, 4, 3))).double()
    z = torch.from_numpy(rng.integers(-1, 2, (trials, 3, 3))).double()
    return am.token_problem(X, z, torch.from_numpy(rng.integers(0, 4, (trials, 3))))


def _equalities(trials: int) -> am.MarginProblem:
    """Return problems that select sets, some with tokens that nobody sees."""
    rng = np.random.default_rng(3)
    X, z = rng.standard_normal((trials, 4, 4, 4)), rng.standard_normal((trials, 4, 4))
    chosen, mask = np.zeros((trials, 4, 4), bool), np.ones((trials, 4, 4), bool)
    chosen[..., 0] = True
    chosen[::2, 0, 1] = True
    mask[1::3, 1, 3] = False
    return am.token_problem(*map(torch.from_numpy, (X, z, chosen, mask)))


PROBLEMS: dict[str, Callable[[int], am.MarginProblem]] = {
    "feasible": _feasible, "mixed": _mixed, "degenerate": _degenerate, "equalities": _equalities,
}  # fmt: skip
