"""NTP-SVM: rows of a linear decoder that predicts the next word (Thrampoulidis, 2402.18551)."""

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, broadcast, finite, floats
from attnmargin.base.errors import InputError
from attnmargin.margin.problem import CONTEXT, MarginProblem, RowNames


def next_token_problem(contexts: Array, probabilities: Array) -> MarginProblem:
    """Build the max-margin problem of next-token prediction with a linear decoder W.

        (e_z − e_z′)ᵀ W h_j = 0   for words z, z′ that both follow context j
        (e_z − e_v)ᵀ W h_j ≥ 1    for words v that never do                          (NTP-SVM)

    Contexts that have a solution are called *separable*: training can then bring the cross-entropy
    down to the entropy of the data, and W grows along the shortest solution
    (Thrampoulidis, 2402.18551). The first word that follows represents the others: its rows imply
    theirs.

    Args:
        contexts: embeddings h of m contexts, ``(*B, m, d)``.
        probabilities: of V words after each context, or counts, ``(*B, m, V)``; only which are
            positive counts.

    Returns:
        A problem over W of shape ``(V, d)`` with ``m (V − 1)`` rows.

    Example:
        >>> import attnmargin as am
        >>> contexts, counts = [[1.0, 0.0], [0.0, 1.0]], [[3, 1, 0], [0, 0, 5]]
        >>> am.solve(am.next_token_problem(contexts, counts)).W.round(decimals=9).tolist()
        [[0.333333333, -0.333333333], [0.333333333, -0.333333333], [-0.666666667, 0.666666667]]
    """
    h, p = next_word_arrays(contexts, probabilities)
    follows = p > 0
    first, other = _words(follows)
    tied = follows.gather(-1, other)
    return _rows(h, (first, other), (~tied).to(h.dtype), tied, torch.ones_like(tied))


def compatible_problem(contexts: Array, probabilities: Array) -> MarginProblem:
    """Build the equations of a decoder whose probabilities are those of the data.

        (e_z − e_z′)ᵀ W h_j = log(p_jz / p_jz′)   for words z, z′ that both follow context j

    Contexts that have a solution are called *compatible*. The shortest solution is the finite part
    of training, W⋆ (Thrampoulidis, 2402.18551).

    Args:
        contexts, probabilities: as in :func:`next_token_problem`; here their ratios count.

    Example:
        >>> import attnmargin as am
        >>> problem = am.decoders.compatible_problem([[1.0]], [[3, 1, 0]])
        >>> am.solve(problem).W.round(decimals=6).tolist()  # ± ½ log 3
        [[0.549306], [-0.549306], [0.0]]
    """
    h, p = next_word_arrays(contexts, probabilities)
    follows = p > 0
    first, other = _words(follows)
    tied = follows.gather(-1, other)
    logs = p.log().where(follows, 0.0)
    bound = (logs.gather(-1, first.unsqueeze(-1)) - logs.gather(-1, other)) * tied
    return _rows(h, (first, other), bound, torch.ones_like(tied), tied)


def next_word_arrays(contexts: Array, probabilities: Array) -> tuple[Tensor, Tensor]:
    """Check embeddings and probabilities or counts; return them with one batch shape."""
    h = finite("contexts", floats("contexts", contexts))
    if h.ndim < 2 or 0 in h.shape[-2:]:
        raise InputError("contexts", f"shape {tuple(h.shape)}", "embeddings (*B, m, d)")
    p = finite("probabilities", floats("probabilities", probabilities, like=h))
    if p.ndim < 2 or p.shape[-2] != h.shape[-2] or p.shape[-1] < 2:
        needs = f"(*B, {h.shape[-2]}, V) for V ≥ 2 words"
        raise InputError("probabilities", f"shape {tuple(p.shape)}", needs)
    if bool((p < 0).any()):
        raise InputError("probabilities", f"{float(p.min()):g}", "numbers that are not negative")
    empty = ~(p > 0).any(-1)
    if bool(empty.any()):
        j = int(empty.nonzero()[0, -1])
        raise InputError("probabilities", f"no word after context {j}", "at least one")
    batch = broadcast({"contexts": h.shape[:-2], "probabilities": p.shape[:-2]})
    return h.expand(*batch, *h.shape[-2:]), p.expand(*batch, *p.shape[-2:])


def _words(follows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first word that follows ``(*B, m)``, and all others ``(*B, m, V − 1)``."""
    first = follows.to(torch.uint8).argmax(-1)
    rank = torch.arange(follows.shape[-1] - 1, device=follows.device)
    return first, rank + (rank >= first.unsqueeze(-1))


def _rows(
    h: Tensor, words: tuple[Tensor, Tensor], bound: Tensor, equality: Tensor, mask: Tensor
) -> MarginProblem:
    """Join every pair of words with its context."""
    first, other = words
    m, count = other.shape[-2:]
    unit = torch.eye(count + 1, dtype=h.dtype, device=h.device)
    left = unit[first].unsqueeze(-2) - unit[other]
    context = torch.arange(m, device=h.device).repeat_interleave(count)
    names = RowNames(
        context,
        torch.full_like(context, CONTEXT),
        first.repeat_interleave(count, dim=-1),
        other.flatten(-2),
    )
    bound, equality, mask = (x.flatten(-2) for x in (bound, equality, mask))
    return MarginProblem(left.flatten(-3, -2), h, bound, equality, mask, names)
