"""Every claim of every experiment holds on results made by hand, and fails on a mutant of them."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.registry import experiments, find
from tests.papers import mutants
from tests.papers.mutants.parts import Case, Mutant, Results

_FILES = sorted(Path(mutants.__path__[0]).glob("paper_*.py"))
_PAPERS = [import_module(f"{mutants.__name__}.{file.stem}") for file in _FILES]
CASES: dict[str, Case] = {case.name: case for paper in _PAPERS for case in paper.CASES}
MUTANTS = [
    pytest.param(case, mutant, id=f"{case.name}-{k}")
    for case in CASES.values()
    for k, mutant in enumerate(case.mutants)
]


def _holds(case: Case, results: Results) -> dict[str, bool]:
    """Judge all claims; a second one of the same words is called so."""
    found: dict[str, bool] = {}
    for claim in find(case.name).claims(results):
        words = claim.claim
        found[f"{words} again" if words in found else words] = claim.holds
    return found


def _noticing(mutant: Mutant, claims: dict[str, bool]) -> set[int]:
    """Return the places of the claims that must notice a mutant."""
    return {k for k, words in enumerate(claims) if re.search(mutant.breaks, words)}


def test_every_experiment_has_a_case() -> None:
    assert sorted(CASES) == sorted(experiments())


@pytest.mark.parametrize("name", experiments())
def test_claims_hold_and_each_has_a_mutant(name: str) -> None:
    case = CASES[name]
    claims = _holds(case, case.results())
    assert [words for words, holds in claims.items() if not holds] == []
    noticed = set().union(*(_noticing(mutant, claims) for mutant in case.mutants))
    assert [words for k, words in enumerate(claims) if k not in noticed] == []


@pytest.mark.parametrize(("case", "mutant"), MUTANTS)
def test_a_mutant_breaks_its_claims(case: Case, mutant: Mutant) -> None:
    places = _noticing(mutant, _holds(case, case.results()))
    after = list(_holds(case, case.broken(mutant)).items())
    assert places
    assert [after[k][0] for k in places if after[k][1]] == [], mutant.broken


@pytest.mark.parametrize("name", experiments())
@pytest.mark.filterwarnings("ignore")
def test_no_claim_holds_on_numbers_that_are_lost(name: str) -> None:
    """A claim that holds with NaN in the place of real numbers must not read real numbers."""
    case = CASES[name]
    lost, false = (
        {key: _scaled(arrays, factor) for key, arrays in case.results().items()}
        for factor in (np.nan, -1000.0)
    )
    try:
        without = {words for words, holds in _holds(case, lost).items() if holds}
    except am.InputError:
        return
    assert without <= {words for words, holds in _holds(case, false).items() if holds}


def _scaled(arrays: Arrays, factor: float) -> Arrays:
    return {key: x * factor if x.dtype.kind == "f" else x for key, x in arrays.items()}
