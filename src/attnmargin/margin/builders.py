"""Builders of margin problems: tokens and sets, the finite part, labels, embeddings."""

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.selection import selected_sets
from attnmargin.base.arrays import Array, broadcast, finite, floats
from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError
from attnmargin.base.places import place_words
from attnmargin.base.words import counted
from attnmargin.data.attention_data import check_queries, check_tokens, plus_minus_one, token_ids
from attnmargin.data.embeddings import embedded, embedding_table
from attnmargin.margin.problem import MarginProblem, RowNames


@final
@dataclass(frozen=True)
class _Layout:
    """Sizes shared by all builders: batch ``*B``, n sequences, K queries each, T tokens."""

    batch: torch.Size
    n: int
    K: int
    T: int

    @property
    def tokens(self) -> tuple[int, ...]:
        return (*self.batch, self.n, self.K, self.T)

    def spread(self, x: Tensor, per_query: bool) -> Tensor:
        """Expand ``(*b, n, T, …)`` or ``(*b, n, K, T, …)`` to ``(*B, n, K, T, …)``."""
        extra = () if x.dtype == torch.bool else x.shape[-1:]
        x = x if per_query else x.unsqueeze(-2 - len(extra))
        return x.expand(*self.tokens, *extra)


def _refuse(wrong: Tensor, got: str, needs: str, argument: str, first: int = 0) -> None:
    """Raise InputError if any query ``(*B, n, K)`` is wrong; sequences count from ``first``."""
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        place[-2] += first
        place = place if wrong.shape[-1] > 1 else place[:-1]
        where = place_words(place, wrong.ndim - 2)
        raise InputError(argument, f"{got} in {where}", needs)


def _selected(selection: Array, X: Tensor, z: Tensor, argument: str = "selection") -> Tensor:
    """Convert the selection to bool ``(*b, n, K, T)``."""
    several = z.ndim == X.ndim
    n, T = X.shape[-3:-1]
    inner = (n, z.shape[-2]) if several else (n,)
    chosen = selected_sets(selection, X, inner, T, argument)
    return chosen if several else chosen.unsqueeze(-2)


def _layout(X: Tensor, z: Tensor, chosen: Tensor, mask: Tensor | None) -> _Layout:
    several, per_query = z.ndim == X.ndim, mask is not None and mask.ndim == X.ndim
    K = z.shape[-2] if several else 1
    if mask is not None and per_query and mask.shape[-2] != K:
        got = f"a mask for {counted(mask.shape[-2], 'query', 'queries')}"
        raise InputError("mask", got, f"one for each of the {K}")
    batch = broadcast(
        {
            "X": X.shape[:-3],
            "z": z.shape[: X.ndim - 3],
            "selection": chosen.shape[:-3],
            "mask": () if mask is None else mask.shape[: X.ndim - 3],
        }
    )
    return _Layout(batch, X.shape[-3], K, X.shape[-2])


@final
@dataclass(frozen=True)
class _Pairs:
    """Token differences, representative minus every other token, ``(*B, n, K, T−1, …)``."""

    left: Tensor
    tied: Tensor  # the other token is selected too
    exists: Tensor  # the other token is visible
    representative: Tensor  # (*B, n, K)
    other: Tensor


def _visible(X: Tensor, mask: Tensor | None, layout: _Layout) -> Tensor | None:
    """Expand the mask to bool ``(*B, n, K, T)``."""
    return None if mask is None else layout.spread(mask, per_query=mask.ndim == X.ndim)


def representatives(
    chosen: Tensor, visible: Tensor | None, argument: str = "selection", first: int = 0
) -> Tensor:
    """Check the selection against the mask; return the first selected token ``(*B, n, K)``.

    Args:
        chosen, visible: bool ``(*B, n, K, T)``.
        first: the number of the first sequence, for messages.
    """
    empty = ~chosen.any(-1)
    if visible is not None:
        alive = visible.any(-1)
        hidden = (chosen & ~visible).any(-1) & alive
        _refuse(hidden, "a token that the mask hides", "visible tokens", argument, first)
        empty = empty & alive
    _refuse(empty, "no token", "at least one token per sequence", argument, first)
    return chosen.to(torch.uint8).argmax(-1)


def _pairs(
    X: Tensor, chosen: Tensor, mask: Tensor | None, layout: _Layout, argument: str = "selection"
) -> _Pairs:
    """Form all pairs of tokens that a selection separates or ties."""
    chosen = chosen.expand(layout.tokens)
    visible = _visible(X, mask, layout)
    representative = representatives(chosen, visible, argument)
    tokens = layout.spread(X, per_query=False)
    rank = torch.arange(layout.T - 1, device=X.device)
    other = rank + (rank >= representative.unsqueeze(-1))
    wide = (*other.shape, X.shape[-1])
    first = tokens.gather(-2, representative[..., None, None].expand(*wide[:-2], 1, wide[-1]))
    # In place: the differences are as large as the tokens, or larger.
    left = tokens.gather(-2, other.unsqueeze(-1).expand(wide)).neg_().add_(first)
    exists = torch.ones_like(other, dtype=torch.bool)
    if visible is not None:
        exists = visible.gather(-1, other) & visible.any(-1, keepdim=True)
    return _Pairs(left, chosen.gather(-1, other), exists, representative, other)


def _names(pairs: _Pairs, layout: _Layout) -> RowNames:
    """Name the rows ``(*B, M)`` in the order sequence, query, other token."""
    device = pairs.other.device
    size = (layout.n, layout.K, layout.T - 1)
    sequence = torch.arange(layout.n, device=device)[:, None, None].expand(size)
    position = torch.arange(layout.K, device=device)[:, None].expand(size)
    if layout.K == 1:
        position = torch.full(size, -1, device=device)
    chosen = pairs.representative.unsqueeze(-1).expand(pairs.other.shape)
    return RowNames(
        sequence.flatten(), position.flatten(), chosen.flatten(-3), pairs.other.flatten(-3)
    )


def _rows(pairs: _Pairs, query: Tensor, layout: _Layout, bound: Tensor) -> MarginProblem:
    """Join all pairs with their queries ``(*b, Q, e)``; tied pairs become equalities."""
    return MarginProblem(
        pairs.left.flatten(-4, -2),
        query.expand(*layout.batch, *query.shape[-2:]),
        bound.flatten(-3),
        pairs.tied.flatten(-3),
        pairs.exists.flatten(-3),
        _names(pairs, layout),
    )


def _queries(X: Tensor, z: Tensor) -> Tensor:
    """Flatten the queries of all sequences to ``(*b, n · K, d)``."""
    return z.flatten(-3, -2) if z.ndim == X.ndim else z


@one_thread
def token_problem(X: Array, z: Array, selection: Array, mask: Array | None = None) -> MarginProblem:
    """Build the attention SVM: the selected tokens beat all others by margin one.

        (x_iα − x_it)ᵀ W z_i ≥ 1   for every other visible token t        (Att-SVM)
        (x_iα − x_iτ)ᵀ W z_i = 0   for further selected tokens τ          (Gen-SVM)

    Paper A: (Att-SVM), (Gen-SVM) of Section 6, (11) and its causal form of Section 7. The first
    token α represents a set: its inequalities and the equalities imply all others.

    Args:
        X: tokens ``(*B, n, T, d)``, or a list of n arrays ``(T_i, d)``.
        z: queries ``(*B, n, d)``, or ``(*B, n, K, d)`` for sequence outputs.
        selection: int ``(*B, n)`` (``(*B, n, K)``), or bool sets with a last dimension T.
            Its batch dimensions broadcast, so one call handles many selections of one instance.
        mask: visible tokens, ``(*B, n, T)``, or ``(*B, n, K, T)`` (causal: ``t ≤ k``).
            Sequences without a visible token have no rows.

    Returns:
        A problem with ``M = n · K · (T − 1)`` rows, ordered by sequence, query and other token.

    Example:
        >>> import attnmargin as am
        >>> problem = am.token_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [0])
        >>> am.solve(problem).W.tolist()
        [[0.0, 0.5], [0.0, 0.0]]
    """
    X, mask = check_tokens(X, mask)
    z = check_queries(X, z)
    chosen = _selected(selection, X, z)
    layout = _layout(X, z, chosen, mask)
    pairs = _pairs(X, chosen, mask, layout)
    return _rows(pairs, _queries(X, z), layout, (~pairs.tied).to(X.dtype))


def set_problem(X: Tensor, z: Tensor, sets: Tensor, mask: Tensor | None = None) -> MarginProblem:
    """Build the SVM of sets whose shares are free: each of their tokens beats all others.

        (x_iα − x_it)ᵀ W z_i ≥ 1   for every α of the set and every visible t outside it

    Without the equalities of :func:`token_problem`: what is selected is the set as a whole.

    Args:
        X, z, mask: as in :func:`token_problem`, checked.
        sets: bool ``(*B, n, T)`` or ``(*B, n, K, T)``.

    Returns:
        A problem with ``M = n · K · S · T`` rows, S the size of the largest set.
    """
    chosen = _selected(sets, X, z)
    layout = _layout(X, z, chosen, mask)
    chosen = chosen.expand(layout.tokens)
    visible = _visible(X, mask, layout)
    seen = torch.ones_like(chosen) if visible is None else visible
    inside = chosen & seen
    order = inside.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    own = order[..., : max(int(inside.sum(-1).max()), 1)]
    tokens = layout.spread(X, per_query=False)
    members = tokens.gather(-2, own.unsqueeze(-1).expand(*own.shape, X.shape[-1]))
    left = members.unsqueeze(-2) - tokens.unsqueeze(-3)
    exists = inside.gather(-1, own).unsqueeze(-1) & (seen & ~chosen).unsqueeze(-2)
    names = _set_names(own, layout)
    query = _queries(X, z)
    bound = torch.ones_like(left[..., 0]).flatten(-4)
    return MarginProblem(
        left.flatten(-5, -2),
        query.expand(*layout.batch, *query.shape[-2:]),
        bound,
        torch.zeros_like(bound, dtype=torch.bool),
        exists.flatten(-4),
        names,
    )


def _set_names(own: Tensor, layout: _Layout) -> RowNames:
    """Name the rows by sequence, query, token of the set and other token."""
    size = (layout.n, layout.K, own.shape[-1], layout.T)
    steps = [torch.arange(count, device=own.device) for count in size]
    sequence, position, _, other = torch.meshgrid(*steps, indexing="ij")
    position = position if layout.K > 1 else torch.full_like(position, -1)
    chosen = own.unsqueeze(-1).expand(*own.shape, layout.T)
    names = (sequence.flatten(), position.flatten(), chosen.flatten(-4), other.flatten())
    return RowNames(*names)


def finite_problem(
    X: Array, z: Array, probability: Array, mask: Array | None = None
) -> MarginProblem:
    """Build the finite part: the softmax attains the given probabilities (paper A, eq. 7).

        (x_it − x_iτ)ᵀ W z_i = log(s_it / s_iτ)   for all tokens with s_it, s_iτ > 0

    Args:
        X, z, mask: as in :func:`token_problem`.
        probability: ``s ≥ 0``, ``(*B, n, T)`` or ``(*B, n, K, T)``; only ratios count.

    Example:
        >>> import attnmargin as am
        >>> problem = am.finite_problem([[[1.0], [0.0]]], [[1.0]], [[0.75, 0.25]])
        >>> round(float(am.solve(problem).W), 6)  # log 3
        1.098612
    """
    X, mask = check_tokens(X, mask)
    z = check_queries(X, z)
    s = finite("probability", floats("probability", probability, like=X))
    if bool((s < 0).any()):
        raise InputError("probability", f"{float(s.min()):g}", "numbers that are not negative")
    chosen = _selected(s > 0, X, z, argument="probability")
    layout = _layout(X, z, chosen, mask)
    pairs = _pairs(X, chosen, mask, layout, argument="probability")
    logs = (s if z.ndim == X.ndim else s.unsqueeze(-2)).clamp_min(torch.finfo(s.dtype).tiny).log()
    logs = logs.expand(layout.tokens)
    bound = logs.gather(-1, pairs.representative.unsqueeze(-1)) - logs.gather(-1, pairs.other)
    rows = _rows(pairs, _queries(X, z), layout, bound * pairs.tied)
    return replace(rows, equality=torch.ones_like(rows.equality), mask=rows.mask & rows.equality)


def label_problem(X: Array, y: Array, selection: Array, mask: Array | None = None) -> MarginProblem:
    """Build the ℓp-SVM of the head: the selected tokens classify all labels by margin one.

        y_i x_iαᵀ v ≥ 1   for every sequence i                  (paper B, ℓp-SVM)

    Args:
        X: tokens ``(*B, n, T, d)``; y: labels ±1, ``(*B, n)``; selection: int ``(*B, n)``.

    Returns:
        A problem over the vector v as a matrix ``(d, 1)``, with n rows.

    Example:
        >>> import attnmargin as am
        >>> problem = am.label_problem([[[2.0, 0.0]], [[-4.0, 0.0]]], [1, -1], [0, 0])
        >>> am.solve(problem).vector.tolist()
        [0.5, 0.0]
    """
    X, mask = check_tokens(X, mask)
    y = finite("y", floats("y", y, like=X))
    if y.ndim != X.ndim - 2 or y.shape[-1] != X.shape[-3]:
        needs = f"one label per sequence, (*B, {X.shape[-3]})"
        raise InputError("y", f"shape {tuple(y.shape)}", needs)
    if mask is not None and mask.ndim == X.ndim:
        raise InputError("mask", f"shape {tuple(mask.shape)}", "(*B, n, T)")
    plus_minus_one(y)
    chosen = _selected(selection, X, y.unsqueeze(-1))
    _refuse(chosen.sum(-1) > 1, "several tokens", "one token per sequence", "selection")
    layout = _layout(X, y.unsqueeze(-1), chosen, mask)
    index = representatives(
        chosen.expand(layout.tokens), _visible(X, mask, layout), "selection"
    ).squeeze(-1)
    tokens = X.expand(*layout.batch, *X.shape[-3:])
    left = tokens.take_along_dim(index[..., None, None], -2).squeeze(-2) * y.unsqueeze(-1)
    exists = torch.ones_like(index, dtype=torch.bool)
    if mask is not None:
        exists = mask.any(-1).expand(index.shape)
    none = torch.full((layout.n,), -1, device=X.device)
    return MarginProblem(
        left,
        X.new_ones(1, 1).expand(*layout.batch, 1, 1),
        X.new_ones(()).expand(index.shape),
        torch.zeros_like(exists),
        exists,
        RowNames(torch.arange(layout.n, device=X.device), none, index, none),
    )


def embedding_problem(
    E: Array, sequences: Array, selection: Array, mask: Array | None = None
) -> MarginProblem:
    """Build the max-margin problem of the ⟨cls⟩ embedding p for a selection (paper D, eq. 9).

        pᵀ(E_s − E_s′) ≥ 1   for s selected and s′ not selected in the same sequence
        pᵀ(E_s − E_s′) = 0   for s, s′ both selected

    The selection applies to tokens, not positions: every copy of a selected token counts as
    selected.

    Args:
        E: embeddings ``(*B, K, d)``.
        sequences: token ids ``(*B, n, T)``, or a list of n lists of ids.
        selection: positions, int ``(*B, n)`` or bool ``(*B, n, T)``; mask: bool ``(*B, n, T)``.

    Returns:
        A problem over the vector p as a matrix ``(d, 1)``, with ``n · (T − 1)`` rows.

    Example:
        >>> import attnmargin as am
        >>> problem = am.embedding_problem([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0]], [0])
        >>> am.solve(problem).W.flatten().tolist()
        [0.5, -0.5]
    """
    table = embedding_table(E)
    ids, mask = token_ids(sequences, mask, table)
    X, mask = check_tokens(embedded(table, ids), mask)
    ones = X.new_ones(*X.shape[:-2], 1)
    chosen = _selected(selection, X, ones).squeeze(-2)
    same = ids.unsqueeze(-1) == ids.unsqueeze(-2)  # (*b, n, T, T)
    copies = (same & chosen.unsqueeze(-2)).any(-1)
    copies = (copies if mask is None else copies & (mask | chosen)).unsqueeze(-2)
    layout = _layout(X, ones, copies, mask)
    pairs = _pairs(X, copies, mask, layout)
    rows = _rows(pairs, ones, layout, (~pairs.tied).to(X.dtype))
    query = X.new_ones(1, 1).expand(*layout.batch, 1, 1)
    return replace(rows, query=query)
