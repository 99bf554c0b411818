"""NextWords: embedded contexts, and what follows each of them how often."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_index, check_whole
from attnmargin.base.display import Summarised, shape_words
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.margin.contexts import compatible_problem, next_token_problem, next_word_arrays
from attnmargin.margin.problem import MarginProblem


@final
@dataclass(frozen=True, eq=False, repr=False)
class NextWords(Summarised):
    """m embedded contexts and the words that follow them: data of a linear decoder.

    Built by :func:`next_words`, :func:`random_next_words` and :meth:`WordCounts.embedded`.
    """

    contexts: Tensor  # (*B, m, d)
    probabilities: Tensor  # (*B, m, V), rows sum to one
    weight: Tensor  # (*B, m), how often each context occurs, sums to one
    words: tuple[str, ...] | None = None  # names of the V words
    names: tuple[str, ...] | None = None  # names of the m contexts

    def summary(self) -> dict[str, str]:
        """Return sizes, by name."""
        m, d = self.contexts.shape[-2:]
        return {
            "batch": shape_words(self.batch_shape),
            "contexts": f"{m}, embedded in {d} dimensions",
            "words": f"{self.V}, {float(self.follows.sum(-1).double().mean()):.3g} after a context",
        }

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions ``*B``."""
        return self.contexts.shape[:-2]

    @property
    def V(self) -> int:
        """Number of words."""
        return int(self.probabilities.shape[-1])

    @property
    def follows(self) -> Tensor:
        """Which words follow each context, bool ``(*B, m, V)``."""
        return self.probabilities > 0

    @cached_property
    def entropy(self) -> Tensor:
        """``−Σ_j weight_j Σ_z p_jz log p_jz`` ``(*B,)``: no cross-entropy is lower."""
        return -(
            self.weight.unsqueeze(-1) * torch.xlogy(self.probabilities, self.probabilities)
        ).sum((-2, -1))

    @cached_property
    def problem(self) -> MarginProblem:
        """The max-margin problem, see :func:`attnmargin.next_token_problem`."""
        return next_token_problem(self.contexts, self.probabilities)

    @cached_property
    def equations(self) -> MarginProblem:
        """The equations of the finite part, see :func:`compatible_problem`."""
        return compatible_problem(self.contexts, self.probabilities)

    def loss(self, W: Tensor) -> Tensor:
        """Compute the cross-entropy ``(*R, *B)`` of decoders W ``(*R, *B, V, d)``."""
        logs = torch.log_softmax(self.contexts @ W.mT, -1)
        terms = (self.probabilities * logs).sum(-1)
        return -(self.weight * terms).sum(-1)

    def gradient(self, W: Tensor) -> Tensor:
        """Compute ``Σ_j weight_j (softmax(W h_j) − p_j) h_jᵀ``, ``(*B, V, d)``."""
        off = torch.softmax(self.contexts @ W.mT, -1) - self.probabilities
        return (self.weight.unsqueeze(-1) * off).mT @ self.contexts

    def __getitem__(self, index: Any) -> "NextWords":
        """Return members of the batch, indexed like a tensor."""
        check_index(self.batch_shape, index)
        own = {name: getattr(self, name)[index] for name in ("contexts", "probabilities", "weight")}
        return replace(self, **own)


def next_words(
    contexts: Array,
    counts: Array,
    *,
    words: tuple[str, ...] | None = None,
    names: tuple[str, ...] | None = None,
) -> NextWords:
    """Build data of a linear decoder from embeddings and counts or probabilities.

    Contexts weigh as much as their counts add up to, so that rows of probabilities weigh the same.

    Args:
        contexts: embeddings ``(*B, m, d)``.
        counts: of V words after each context, ``(*B, m, V)``.
        words, names: of the words and of the contexts, for messages.

    Example:
        >>> import attnmargin as am
        >>> data = am.decoders.next_words([[1.0, 0.0], [0.0, 1.0]], [[3, 1, 0], [0, 0, 4]])
        >>> data.probabilities[0].tolist(), round(float(data.entropy), 6)
        ([0.75, 0.25, 0.0], 0.281168)
    """
    h, p = (x.double() for x in next_word_arrays(contexts, counts))
    for argument, own, size in (("words", words, p.shape[-1]), ("names", names, h.shape[-2])):
        if own is not None and len(own) != size:
            raise InputError(argument, f"{len(own)} of them", f"one for each of {size}")
    total = p.sum(-1)
    return NextWords(h, p / total.unsqueeze(-1), total / total.sum(-1, keepdim=True), words, names)


def random_next_words(
    m: int,
    d: int,
    V: int,
    follow: int,
    trials: int | None = None,
    *,
    name: str = "sample",
    seed: int = 0,
) -> NextWords:
    """Draw contexts on the unit sphere, each followed by ``follow`` of V words.

    Probabilities are uniform on the simplex. Each trial has its own seed, so trial 7 is the same
    whether 10 or 1000 are drawn.

    Args:
        m, d: number of contexts, and their width.
        V, follow: number of words, and how many follow each context.
        trials: batch size; None for one instance without a batch dimension.

    Example:
        >>> import attnmargin as am
        >>> am.decoders.random_next_words(5, 8, 10, 3, trials=2)
        NextWords
          batch     2
          contexts  5, embedded in 8 dimensions
          words     10, 3 after a context
    """
    check_whole(m=m, d=d, V=V, follow=follow, trials=1 if trials is None else trials)
    if not follow < V:
        raise InputError("follow", f"{follow} of {V} words", "fewer words than there are")
    drawn = []
    for trial in range(1 if trials is None else trials):
        generator = torch.Generator().manual_seed(seed_of(name, trial, base=seed))
        h = torch.randn(m, d, generator=generator, dtype=torch.float64)
        order = torch.rand(m, V, generator=generator, dtype=torch.float64).argsort(-1)[:, :follow]
        share = -torch.rand(m, follow, generator=generator, dtype=torch.float64).log()
        p = torch.zeros(m, V, dtype=torch.float64).scatter(-1, order, share)
        drawn.append((h / h.norm(dim=-1, keepdim=True), p / p.sum(-1, keepdim=True)))
    h, p = (torch.stack(parts) for parts in zip(*drawn, strict=True))
    return next_words(h, p) if trials is not None else next_words(h[0], p[0])
