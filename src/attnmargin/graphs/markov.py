"""Self-attention as a Markov chain conditioned on its context (Ildiz et al., 2402.13512)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from attnmargin.base.arrays import Array, as_tensor
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.data.embeddings import embedding_table
from attnmargin.graphs.newton import gathered, minimum
from attnmargin.graphs.samples import Samples, as_samples
from attnmargin.graphs.vocabulary import Vocabulary

Floats = NDArray[np.float64]


@final
class ContextChain:
    """One layer of self-attention whose head reads tokens out (``C Eᵀ = I``).

    With the last token k of a prompt, in which token j occurs ``m_j`` times, the next token is

        p(j) = m_j P_kj / Σ_l m_l P_kl,     P_kj ∝ e^{e_jᵀ W e_k},

    so attention is the chain with transition matrix P, weighted by what the prompt holds.

    Args:
        P: transition matrix ``(K, K)``, positive, rows sum to one.

    Example:
        >>> chain = ContextChain([[0.5, 0.5], [0.25, 0.75]])
        >>> chain.next([0, 0, 1]).round(decimals=4).tolist()   # 2 · 1/4 against 1 · 3/4
        [0.4, 0.6]
    """

    def __init__(self, P: Array) -> None:
        self.P = as_tensor("P", P).double()
        square = self.P.ndim == 2 and self.P.shape[0] == self.P.shape[1]
        if not square or not bool((self.P > 0.0).all()):
            got = f"shape {tuple(self.P.shape)}" if not square else "an entry that is not positive"
            raise InputError("P", got, "a positive matrix (K, K) whose rows sum to one")
        if not torch.allclose(self.P.sum(-1), self.P.new_ones(()), rtol=1e-9):
            got = f"a row that sums to {float(self.P.sum(-1).amax()):.6g}"
            raise InputError("P", got, "rows that sum to one")

    @property
    def K(self) -> int:
        """Number of tokens."""
        return len(self.P)

    def next(self, prompt: Any) -> Tensor:
        """Return the distribution ``(K,)`` of the token after a prompt of ids."""
        ids = as_tensor("prompt", prompt).long()
        if ids.ndim != 1 or not len(ids) or bool(((ids < 0) | (ids >= self.K)).any()):
            raise InputError("prompt", f"{prompt!r:.60}", f"one or more ids from 0 to {self.K - 1}")
        share = torch.bincount(ids, minlength=self.K) * self.P[ids[-1]]
        return share / share.sum()

    def weights(self, E: Array) -> Tensor:
        """Return W ``(d, d)`` with ``e_jᵀ W e_k = log P_kj``, for independent embeddings e."""
        own = embedding_table(E, self.K, batched=False).double()
        inverse = torch.linalg.pinv(own)  # (d, K)
        if not torch.allclose(own @ inverse, torch.eye(self.K, dtype=own.dtype), atol=1e-8):
            raise InputError("E", "embeddings that depend on each other", "independent rows")
        return inverse @ self.P.log().mT.to(own) @ inverse.mT

    def sample(self, prompts: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the token after each prompt, ids ``(n, T)`` → ``(n,)``."""
        share = self.P[prompts[:, -1]].gather(1, prompts)
        # torch.multinomial draws other tokens in other versions.
        total = share.cumsum(1)
        u = torch.rand(len(total), 1, dtype=total.dtype, generator=generator) * total[:, -1:]
        place = torch.searchsorted(total, u, right=True).clamp_max(total.shape[1] - 1)
        return prompts.gather(1, place)[:, 0]

    def trajectory(self, prompt: Any, steps: int, seed: int = 0) -> NDArray[np.int64]:
        """Continue a prompt by ``steps`` tokens, each part of the context of the next."""
        check_whole(0, steps=steps, seed=seed)
        from attnmargin.graphs.markov_kernel import walk

        ids = np.asarray(prompt)
        counts = np.bincount(ids, minlength=self.K).astype(float)
        found = np.empty(steps, dtype=np.int64)
        uniform = np.random.default_rng(seed).random(steps)
        walk(self.P.numpy(), counts, int(ids[-1]), uniform, found)
        return found


@final
@dataclass(frozen=True, eq=False)
class ChainEstimate:
    """The most likely chain of next-token data, row by row."""

    P: Tensor  # (K, K); NaN in rows that the data do not determine
    identified: NDArray[np.bool_]  # (K,)
    why: list[str]  # for each last token, "" or why its row is not determined


def fit_chain(sequences: Any, labels: Any, K: int) -> ChainEstimate:
    """Estimate the transition matrix of a chain by maximum likelihood, a convex problem.

    Row k is determined if prompts with last token k connect all K tokens (coverage), and if no
    group of tokens is preferred to the rest in every choice between them; then Newton's method
    finds the only maximum, with a gradient below 1e-10.

    Args:
        sequences: prompts of ids from 0 to K − 1.
        labels: the token that followed each.

    Example:
        >>> prompts = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]])
        >>> fit_chain(prompts[[0, 0, 1, 2, 3]], [0, 1, 0, 0, 1], 2).P.round(decimals=3).tolist()
        [[0.5, 0.5], [0.667, 0.333]]
    """
    check_whole(K=K)
    samples = as_samples(sequences, labels, Vocabulary(K))
    if not samples.realisable.all():
        i = int((~samples.realisable).argmax())
        got = f"the label {int(samples.labels[i])} of prompt {i}"
        raise InputError("labels", got, "labels that occur in their prompt")
    P, why = torch.full((K, K), torch.nan, dtype=torch.float64), [""] * K
    for k in range(K):
        counts, chosen = _choices(samples, samples.last == k, K)
        why[k] = _undetermined(counts, chosen, K)
        if not why[k]:
            P[k] = torch.from_numpy(minimum(gathered(counts, chosen))).softmax(0)
    return ChainEstimate(P, np.array([not words for words in why]), why)


def _choices(
    samples: Samples, own: NDArray[np.bool_], K: int
) -> tuple[csr_array, NDArray[np.int64]]:
    """Count the tokens of some prompts, ``(m, K)``, and list what followed them."""
    part = samples[own]
    entries = (np.ones(len(part.tokens)), (part.owner, part.tokens))
    counts = csr_array(entries, shape=(part.n, K))
    counts.sum_duplicates()
    return counts, part.labels


def _undetermined(counts: csr_array, chosen: NDArray[np.int64], K: int) -> str:
    """Say why choices do not determine the logits of all K tokens; "" if they do."""
    if not len(chosen):
        return "no prompt ends with it"
    chosen_over = np.repeat(chosen, np.diff(counts.indptr))
    shape = (K, K)
    edges = csr_array((np.ones(len(chosen_over)), (chosen_over, counts.indices)), shape=shape)
    groups, label = connected_components(edges, directed=False)
    if groups > 1:
        parts = [str(np.flatnonzero(label == g).tolist()) for g in range(groups)]
        return f"no prompt holds tokens of both {' and '.join(parts[:2])}"
    strong, label = connected_components(edges, directed=True, connection="strong")
    if strong > 1:
        first = np.flatnonzero(label == label[chosen[0]]).tolist()
        return f"choices between {first} and the other tokens all go one way"
    return ""
