"""The table of all checks."""

from dataclasses import dataclass, fields
from typing import Any, final

from attnmargin.attention.losses import Loss
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind, check_number
from attnmargin.data.attention_data import AttentionData
from attnmargin.theory import paper_a, paper_a_local, paper_a_paths, paper_b
from attnmargin.theory.check import Check
from attnmargin.theory.elsewhere import other_papers
from attnmargin.theory.facts import Facts

_CHECKS = (
    paper_a.theorem_1,
    paper_a.separable,
    paper_a.lemma_1,
    paper_a.assumption_a,
    paper_a.lemma_2,
    paper_a.lemma_2_limit,
    paper_a_paths.theorem_2,
    paper_a_paths.lemma_3,
    paper_a.lemma_4,
    paper_a.assumption_b1,
    paper_a.average_margin,
    paper_a.width_for_b1,
    paper_a.assumption_b2,
    paper_a.theorem_3,
    paper_a.theorem_3_by_queries,
    paper_a.theorem_4,
    paper_a.theorem_5,
    paper_a.assumption_c,
    paper_a.theorem_6,
    paper_a_local.only_one,
    paper_a_local.theorem_7,
    paper_a_local.assumption_d,
    paper_a_local.strong_d,
    paper_a_local.conjecture,
    paper_a_local.theorem_8,
    paper_a_local.lemma_5,
    paper_a_paths.assumption_e,
    paper_a_paths.theorem_9,
    paper_a_local.lemma_6,
    paper_a_paths.lemma_15,
    paper_a_paths.theorem_10,
    paper_a_paths.corollary_1,
    paper_a_paths.corollary_2,
    paper_b.theorem_1,
    paper_b.theorem_2_b,
    paper_b.remark_1,
    paper_b.theorem_3,
    paper_b.theorem_4,
    paper_b.lemma_17,
    paper_b.assumption_b,
    paper_b.theorem_5,
)


@final
@dataclass(frozen=True, eq=False)
class Grounds:
    """The checks that decide how sure a prediction is."""

    one_sequence: Check  # Theorem 4: descent from any start ends with the best token
    long_step: Check  # Theorem 6: so it does after a long first step
    no_rest: Check  # Theorem 3: there is no stationary point
    only_one: Check  # no other selection is locally optimal
    conjecture: Check  # Assumptions B.1 and D

    def __getitem__(self, index: Any) -> "Grounds":
        """Return members of the batch."""
        return Grounds(*(getattr(self, field.name)[index] for field in fields(self)))


def all_checks(facts: Facts) -> tuple[list[Check], Grounds]:
    """Return every check, in the order of the papers, and those that decide a verdict."""
    found = {check: check(facts) for check in _CHECKS}
    grounds = Grounds(
        one_sequence=found[paper_a.theorem_4],
        long_step=found[paper_a.theorem_6],
        no_rest=found[paper_a.theorem_3_by_queries],
        only_one=found[paper_a_local.only_one],
        conjecture=found[paper_a_local.conjecture],
    )
    return [*found.values(), *other_papers()], grounds


def check_theory(
    data: AttentionData,
    parameter: str = "W",
    p: float = 2.0,
    loss: str | Loss = "logistic",
    *,
    limit: int | None = None,
    selection: Array | None = None,
    init: Any = None,
    width: int | None = None,
) -> list[Check]:
    """Check every assumption and theorem of the four papers on the data.

    Args:
        data: tokens, queries, labels and head, with any batch.
        parameter, p, loss: how it would be trained; see :func:`attnmargin.train`.
        limit: of :func:`attnmargin.selections.local_selections`, which decides Assumption D.
        selection: int ``(*B, n)``, what local theorems are asked about (A: Theorems 7, 9 and 10,
            Assumption E; B: Theorems 2 to 5, Assumption B). By default, the optimal tokens where
            they are locally optimal, else the locally optimal selection of largest margin that
            the search finds, those with a cone of Definition 3 first; with ``init`` the one
            whose cone W(0) is deepest in, or nearest to. B: Assumption B asks about the optimal
            tokens, Theorem 5 about those of largest label margin.
        init: W(0) ``(*B, d, d)``, or a pair (K, Q): local theorems then hold where W(0) is in
            their cone. Without it they hold where there is such a cone.
        width: m, the columns of K and Q, for theorems about them; those of ``init``, or d.

    Returns:
        A list of :class:`Check`, in the order of the papers; each outcome is "holds", "fails" or
        "not decidable here", with the numbers that decide it.

    Example:
        >>> import attnmargin as am
        >>> checks = am.theory.check_theory(am.random_data(2, 2, 4, name="theory"))
        >>> print(next(check for check in checks if check.label == "A: Assumption B.2"))
        A: Assumption B.2: holds (largest difference of such scores 0, smallest score gap 0.196371)
    """
    check_kind("data", data, AttentionData)
    p = check_number("p", p, "a number p > 1")
    own = {"selection": selection, "init": init, "width": width}
    return all_checks(Facts(data, parameter, p, loss, limit, **own))[0]
