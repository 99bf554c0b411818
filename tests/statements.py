"""Every numbered statement of the four papers, in the order of their text."""


def _of(kind: str, *numbers: object) -> list[str]:
    return [f"{kind} {number}" for number in numbers]


STATEMENTS: dict[str, list[str]] = {
    "A": [
        *_of("Definition", *range(1, 6)),
        *_of("Assumption", "A", "B", "C", "D", "E"),
        *_of("Lemma", *range(1, 18)),
        *_of("Theorem", *range(1, 11)),
        *_of("Corollary", 1, 2),
        "Conjecture of Section 5.2",
    ],
    "B": [
        *_of("Definition", *range(1, 6)),
        *_of("Assumption", "A", "B"),
        *_of("Lemma", *range(1, 20)),
        *_of("Theorem", *range(1, 6)),
        *_of("Remark", 1),
        *_of("Example", 1, 2),
    ],
    "C": [
        *_of("Definition", *range(1, 4)),
        *_of("Assumption", *range(1, 5)),
        *_of("Lemma", *range(1, 8)),
        *_of("Theorem", *range(1, 5)),
    ],
    # Paper D numbers all its statements together.
    "D": [
        *_of("Definition", 1, 15, 16),
        *_of("Assumption", 4),
        *_of("Lemma", 2, 3, *range(6, 15), *range(17, 22)),
        *_of("Theorem", 5),
    ],
}
