"""Paper J, "From Self-Attention to Markov Models", as checks."""

from typing import Any

import torch

from attnmargin.graphs.markov import fit_chain
from attnmargin.theory.check import Check, number, outcome


def check_chain(sequences: Any, labels: Any, K: int) -> list[Check]:
    """Check whether prompts determine the chain behind their next tokens (2402.13512).

    Example:
        >>> import attnmargin as am
        >>> for check in am.theory.check_chain([[0, 1, 0], [1, 0, 0], [0, 1, 1]], [0, 1, 0], 2):
        ...     print(f"{check.label}: {check.outcome} {check.note}")
        J: Coverage: holds
        J: Identified: fails 1: choices between [0] and the other tokens all go one way
    """
    found = fit_chain(sequences, labels, K)
    apart = [k for k, words in enumerate(found.why) if words.startswith("no prompt")]
    open_ones = [k for k, words in enumerate(found.why) if words]
    return [
        Check("J", "Coverage", "Prompts with each last token connect all tokens, so that enough of "
              "them determine the chain.", outcome(torch.tensor(not apart)),
              {"rows": number(K), "rows that are not covered": number(len(apart))},
              _first(found.why, apart)),
        Check("J", "Identified", "The log-loss has one minimum in every row.",
              outcome(torch.tensor(not open_ones)),
              {"rows": number(K), "rows without a minimum": number(len(open_ones))},
              _first(found.why, open_ones)),
    ]  # fmt: skip


def _first(why: list[str], rows: list[int]) -> str:
    """Name the first row, and why."""
    return f"{rows[0]}: {why[rows[0]]}" if rows else ""
