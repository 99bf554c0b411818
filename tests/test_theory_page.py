"""docs/theory.md: a row for every statement of the papers."""

import importlib
import re
from pathlib import Path

import pytest

import attnmargin as am
from tests.statements import STATEMENTS

PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
STEP = "proof step, not a check: "
ENTRY = r"(?:\d+|[A-E](?:\.\d)?)\b"
KINDS = r"(Definition|Assumption|Lemma|Theorem|Corollary|Corollarie|Remark|Example)s?"
GROUP = re.compile(rf"{KINDS} ({ENTRY}(?:(?:, | and | to ){ENTRY})*)|(Conjecture of Section 5\.2)")


def cells() -> list[tuple[str, str]]:
    """The first two cells of every row."""
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [(row[0].removeprefix("| "), row[1].removesuffix(" |").strip()) for row in rows[2:]]


def named(cell: str) -> set[tuple[str, str]]:
    """Papers and statements that a first cell names: "A, Lemmas 7 to 9; B, Theorem 1"."""
    found: set[tuple[str, str]] = set()
    parts = re.split(r"(?:^|(?<=; ))([ABCD])(?=, )", cell)
    for paper, text in zip(parts[1::2], parts[2::2], strict=True):
        for kind, numbers, conjecture in GROUP.findall(text):
            if conjecture:
                found.add((paper, conjecture))
            kind = kind.replace("Corollarie", "Corollary")
            found |= {(paper, f"{kind} {number}") for number in spelled(numbers)}
    return found


def spelled(numbers: str) -> list[str]:
    """Spell out "1 to 3, 5 and 7"."""
    found: list[str] = []
    for part in filter(None, re.split(r", | and ", numbers)):
        first, _, last = part.partition(" to ")
        if last and first.isdigit():
            found += [str(k) for k in range(int(first), int(last) + 1)]
        elif last:
            found += [chr(k) for k in range(ord(first), ord(last) + 1)]
        else:
            found.append(first)
    return found


def exists(name: str) -> bool:
    """Whether `am.train` or `attnmargin.papers.a.conjecture.f` is there."""
    path = name.split(".")
    found: object = am
    if path[0] == "attnmargin":
        found, path = importlib.import_module(".".join(path[:-1])), ["", path[-1]]
    for part in path[1:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_the_parser_reads_what_rows_say() -> None:
    cell = "A, Assumptions A to C, Lemmas 1, 3 and 5 to 6; B, Corollaries 1 and 2: A Theorem"
    wanted = {("A", f"Assumption {k}") for k in "ABC"} | {("A", f"Lemma {k}") for k in (1, 3, 5, 6)}
    assert named(cell) == wanted | {("B", "Corollary 1"), ("B", "Corollary 2")}


@pytest.mark.parametrize("paper", STATEMENTS)
def test_every_statement_has_a_row(paper: str) -> None:
    rows = set().union(*(named(cell) for cell, _ in cells()))
    missing = [name for name in STATEMENTS[paper] if (paper, name) not in rows]
    assert missing == []


def test_rows_name_no_statement_that_the_papers_lack() -> None:
    for cell, _ in cells():
        for paper, name in named(cell):
            known = name in STATEMENTS[paper] or re.fullmatch(r"Assumption B\.[12]", name)
            assert known, f"{paper}, {name}"


def test_rows_name_functions_or_say_why_not() -> None:
    for cell, function in cells():
        if function.startswith(STEP):
            assert len(function) > len(STEP) + 10, cell
            continue
        names = re.findall(r"`((?:am|attnmargin)\.[\w.]+)", function)
        assert names, cell
        assert all(exists(name) for name in names), cell
