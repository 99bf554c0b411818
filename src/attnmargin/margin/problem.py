"""MarginProblem: rank-one margin rows ``⟨left rightᵀ, W⟩ ≥ bound`` or ``= bound``.

The rows are stored in factored form, grouped by query: ``M`` left factors and ``Q`` queries.
Row m belongs to query ``m // (M / Q)``. No ``M × d²`` matrix is ever built.
"""

from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, final

import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.arrays import Array, booleans, broadcast, finite, floats, integers
from attnmargin.base.checks import check_index
from attnmargin.base.display import Summarised, shape_words
from attnmargin.base.errors import InputError
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.margin.norms import scaled_norm

# From this many entries of left factors on, no second array of their size is made.
_MANY = 1 << 22
_ROWS = ("left", "query", "bound", "equality", "mask")
# Position of a row that belongs to the graph of a last token, which stands in for its sequence.
LAST_TOKEN = -2
# Position of a row of a classifier: its sequence is an example, its tokens are classes.
EXAMPLE = -3
# Position of a row of a decoder: its sequence is a context, its tokens are words.
CONTEXT = -4


@final
@dataclass(frozen=True)
class RowNames:
    """The sequence, query and tokens of each row: int64, broadcasts to ``(*B, M)``; −1: none."""

    sequence: Tensor
    position: Tensor  # which of several queries of the sequence, or a kind of row as above
    chosen: Tensor  # the token that must win
    other: Tensor  # the token that must lose, or tie


@final
@dataclass(frozen=True, eq=False, repr=False)
class MarginProblem(Summarised):
    """Margin rows over a matrix W of shape ``(d, e)``; a vector is a matrix with e = 1.

    Built by :func:`margin_problem`, :func:`token_problem` and the other builders.
    """

    left: Tensor  # (*B, M, d)
    query: Tensor  # (*B, Q, e), M a multiple of Q
    bound: Tensor  # (*B, M)
    equality: Tensor  # bool (*B, M)
    mask: Tensor  # bool (*B, M), false for padding
    names: RowNames

    def summary(self) -> dict[str, str]:
        """Return sizes and kinds of rows, by name."""
        d, e = self.shape
        exist = int(self.mask.sum())
        equalities = int((self.equality & self.mask).sum())
        return {
            "batch": shape_words(self.batch_shape),
            "W": f"{d} × {e}",
            "rows": f"{self.M} each; {exist} exist, {equalities} of them equalities",
            "dtype": f"{self.left.dtype} on {self.left.device}",
        }

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions ``*B``."""
        return self.left.shape[:-2]

    @property
    def M(self) -> int:
        """Number of rows, padding included."""
        return int(self.left.shape[-2])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape ``(d, e)`` of one W."""
        return int(self.left.shape[-1]), int(self.query.shape[-1])

    @property
    def right(self) -> Tensor:
        """The right factor of every row, ``(*B, M, e)``."""
        return self.query.repeat_interleave(self.M // self.query.shape[-2], dim=-2)

    def _grouped(self, rows: Tensor) -> Tensor:
        """Reshape ``(*B, M, …)`` to ``(*B, Q, M/Q, …)``."""
        Q = self.query.shape[-2]
        return rows.reshape(*self.batch_shape, Q, self.M // Q, *rows.shape[self.left.ndim - 1 :])

    def apply(self, W: Tensor) -> Tensor:
        """Compute ``left_mᵀ W right_m``, ``(*B, M)``, for W of shape ``(*B, d, e)``."""
        image = self.query @ W.mT  # (*B, Q, d)
        left = self._grouped(self.left)
        if left.numel() >= _MANY:
            return (left @ image.unsqueeze(-1)).flatten(-3)
        return (left * image.unsqueeze(-2)).sum(-1).flatten(-2)

    def sizes(self, W: Tensor) -> Tensor:
        """Compute ``|left_m|ᵀ |W| |right_m|``, ``(*B, M)``: rounding of a row is relative to it."""
        image = self.query.abs() @ W.abs().mT
        left = self._grouped(self.left)
        steps = max(_MANY * left.shape[-3] // max(left.numel(), 1), 1)
        parts = zip(left.split(steps, -3), image.split(steps, -2), strict=True)
        values = [(own.abs() * u.unsqueeze(-2)).sum(-1) for own, u in parts]
        return torch.cat(values, -2).flatten(-2)

    def adjoint(self, dual: Tensor) -> Tensor:
        """Compute ``Σ_m dual_m left_m right_mᵀ``, ``(*B, d, e)``, for dual of shape ``(*B, M)``."""
        left, factor = self._grouped(self.left), self._grouped(dual)
        if left.numel() >= _MANY:
            keys = (factor.unsqueeze(-2) @ left).squeeze(-2)
        else:
            keys = (left * factor.unsqueeze(-1)).sum(-2)
        return keys.mT @ self.query

    def lengths(self) -> Tensor:
        """Compute the Frobenius norms ``‖left_m‖ ‖right_m‖`` of the rows, ``(*B, M)``."""
        left = scaled_norm(self._grouped(self.left))
        return (left * scaled_norm(self.query).unsqueeze(-1)).flatten(-2)

    def to(self, device: torch.device | str) -> "MarginProblem":
        """Return the same rows on a device."""
        rows = {name: getattr(self, name).to(device) for name in _ROWS}
        names = (getattr(self.names, field.name).to(device) for field in fields(RowNames))
        return MarginProblem(**rows, names=RowNames(*names))

    def as_dtype(self, dtype: torch.dtype) -> "MarginProblem":
        """Return the same rows in another dtype."""
        if self.left.dtype == dtype:
            return self
        left, query, bound = (x.to(dtype) for x in (self.left, self.query, self.bound))
        return MarginProblem(left, query, bound, self.equality, self.mask, self.names)

    def __getitem__(self, index: Any) -> "MarginProblem":
        """Return members of the batch, indexed like a tensor."""
        shape = (*self.batch_shape, self.M)
        check_index(self.batch_shape, index)
        names = (getattr(self.names, f.name).expand(shape)[index] for f in fields(RowNames))
        left, query, bound, equality, mask = (getattr(self, name)[index] for name in _ROWS)
        return MarginProblem(left, query, bound, equality, mask, RowNames(*names))

    def members(self) -> list[tuple[int, ...]]:
        """List the index of every problem in the batch; without a batch, one empty index."""
        return list(product(*(range(size) for size in self.batch_shape)))

    def arrays(self) -> dict[str, Tensor]:
        """Return all tensors by their names in a file."""
        rows = {name: getattr(self, name) for name in _ROWS}
        return rows | {field.name: getattr(self.names, field.name) for field in fields(RowNames)}

    def save(self, path: str | Path) -> Path:
        """Write the rows and their names to an ``.npz`` file."""
        return write_npz(path, self.arrays())

    @classmethod
    def load(cls, path: str | Path) -> "MarginProblem":
        """Read a file that :meth:`save` wrote."""
        return cls.from_arrays(read_npz(path, needs=("left", "query", "bound")))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "MarginProblem":
        """Build a problem from arrays by name, with the checks of :func:`margin_problem`."""
        problem = margin_problem(*(arrays.get(name) for name in _ROWS))
        if "sequence" not in arrays:
            return problem
        words = [
            integers(field.name, arrays.get(field.name, [[]]), problem.left)
            for field in fields(RowNames)
        ]
        shape = (*problem.batch_shape, problem.M)
        for field, word in zip(fields(RowNames), words, strict=True):
            if word.shape not in (shape, shape[-1:]):
                got = f"row names of shape {tuple(word.shape)}"
                raise InputError(field.name, got, f"{shape} or {shape[-1:]}")
        return replace(problem, names=RowNames(*words))


def margin_problem(
    left: Array,
    right: Array,
    bound: Array = 1.0,
    equality: Array | None = None,
    mask: Array | None = None,
) -> MarginProblem:
    """Build rows ``⟨left_m right_mᵀ, W⟩ ≥ bound_m`` (``=`` where ``equality``) from plain arrays.

    Args:
        left: ``(*B, M, d)``.
        right: ``(*B, M, e)``, or ``(*B, Q, e)`` with M a multiple of Q: each right factor
            then serves M/Q consecutive rows.
        bound: ``(*B, M)`` or a number.
        equality, mask: bool ``(*B, M)``; by default all rows exist and are inequalities.

    Example:
        >>> import attnmargin as am
        >>> problem = am.margin_problem([[2.0, 0.0]], [[1.0]])
        >>> am.solve(problem).W.tolist()
        [[0.5], [0.0]]
    """
    left = finite("left", floats("left", left))
    right = finite("right", floats("right", right, like=left))
    if left.ndim < 2 or right.ndim < 2 or 0 in (left.shape[-1], right.shape[-1]):
        got = f"shapes {tuple(left.shape)} and {tuple(right.shape)}"
        raise InputError("left and right", got, "(*B, M, d) and (*B, M, e)")
    if left.shape[-2] == 0:
        right = right.new_zeros(*right.shape[:-2], 1, right.shape[-1])  # a query without rows
    M, Q = left.shape[-2], right.shape[-2]
    if Q == 0 or M % Q:
        raise InputError("right", f"{Q} factors for {M} rows", "a count that divides the rows")
    if isinstance(bound, int | float):
        bound = left.new_tensor(float(bound))
    bound = finite("bound", floats("bound", bound, like=left))
    equality = left.new_zeros(M, dtype=torch.bool) if equality is None else equality
    mask = left.new_ones(M, dtype=torch.bool) if mask is None else mask
    equality, mask = booleans("equality", equality, left), booleans("mask", mask, left)
    rows = {"bound": bound, "equality": equality, "mask": mask}
    shapes = {name: row.shape[:-1] for name, row in rows.items()}
    batch = broadcast({"left": left.shape[:-2], "right": right.shape[:-2]} | shapes)
    for name, row in rows.items():
        if row.ndim and row.shape[-1] not in (1, M):
            raise InputError(name, f"shape {tuple(row.shape)}", f"(*B, {M})")
    none = torch.full((M,), -1, device=left.device)
    bound, equality, mask = (row.expand(*batch, M) for row in rows.values())
    return MarginProblem(
        left.expand(*batch, M, left.shape[-1]),
        right.expand(*batch, Q, right.shape[-1]),
        bound,
        equality,
        mask,
        RowNames(torch.arange(M, device=left.device), none, none, none),
    )
