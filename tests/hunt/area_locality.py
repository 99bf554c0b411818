"""Local optimality of selections, in every norm, against Definition 2 in exact numbers."""

from collections.abc import Iterator

import numpy as np

import attnmargin as am
from tests.hunt.answers import Answer, Case, judged, local_claims
from tests.hunt.generators import Group, attempt, groups
from tests.hunt.oracle_exact import exact_rows, shortest_point
from tests.hunt.oracle_nuclear import Planted, planted_nuclear
from tests.hunt.truth import local_truth, problem_rows, solved

NORMS: tuple[str | float, ...] = ("fro", 1.1, 1.75, 3.0, 10.0)


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per instance and norm; an infeasible selection is not locally optimal."""
    for k, group in enumerate(groups("locality", seed)):
        if group.X.shape[2] > 1:
            yield attempt(_exact, group)
        if k % 4 == 0:
            yield _planted(planted_nuclear(seed + 1, k // 4))


def _exact(group: Group) -> list[Case]:
    problem, data = group.problem(), group.data()
    rows = list(problem_rows(problem))
    exact = [shortest_point(own) for own in rows]
    cases = []
    for norm in NORMS:
        found = am.selections.locality(data, group.selection, norm)
        said, dual = local_claims(found), found.solution.dual.numpy()
        for k, shortest in enumerate(exact):
            truth: bool | None = False
            if shortest is not None:
                answer = solved(rows[k], norm, shortest, dual[k])
                if answer is None:
                    continue
                truth = local_truth(group, k, rows[k], answer[1])
            cases.append(_case(group, k, norm, said[k], truth))
    return cases


def _planted(planted: Planted) -> list[Case]:
    group = planted.group
    said = local_claims(am.selections.locality(group.data(), group.selection, "nuc"))
    size = planted.slack[0].size
    names = exact_rows(np.ones((size, 1)), np.ones((size, 1)), np.ones(size))  # all rows exist
    cases = []
    for k in range(len(group)):
        slack = np.where(np.abs(planted.slack[k]) < 1e-12, 0.0, planted.slack[k])
        truth = local_truth(group, k, names, slack.ravel().tolist())
        cases.append(_case(group, k, "nuc", said[k], truth))
    return cases


def _case(group: Group, k: int, norm: str | float, said: bool | None, truth: bool | None) -> Case:
    answer = judged(said, truth)
    about = "" if answer == Answer.RIGHT else f"{norm}: said {said}, exactly {truth}"
    return Case(answer, group.family, group.adversarial, about, group.arrays(k), truth is not None)
