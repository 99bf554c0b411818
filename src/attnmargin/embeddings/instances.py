"""Random data of paper D: one important token per sequence, and the K-level model."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.base.unit import unit
from attnmargin.embeddings.model import EmbeddingModel
from attnmargin.embeddings.statistics import TokenStatistics, count_tokens

# Importance levels of figure 2; a smaller level means a more important token.
LEVELS = (0.45, 0.35, 0.3, 0.25, 0.2, 0.1, 0.05, 0.02)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LabelledTokens(Summarised):
    """Sequences of token ids with labels −1 and +1."""

    ids: NDArray[np.int64]  # (n, T)
    y: NDArray[np.int64]  # (n,)
    vocabulary: int

    def summary(self) -> dict[str, str]:
        """Return the sizes, by name."""
        n, T = self.ids.shape
        return {"sequences": f"{n} of {T} tokens", "vocabulary": str(self.vocabulary)}

    def statistics(self) -> TokenStatistics:
        """Count the occurrences of every token by label."""
        signs = np.repeat(self.y, self.ids.shape[1])
        return count_tokens(self.ids.ravel(), signs, self.vocabulary)


def important_tokens(
    n: int, T: int, important: int = 2, irrelevant: int = 6, seed: int = 0
) -> LabelledTokens:
    """Draw data that obey Assumption 4: one completely positive or negative token per sequence.

    Sequences come in pairs with the same irrelevant tokens and opposite labels, so every irrelevant
    token occurs equally often with both.

    Args:
        n: number of sequences, even; T: tokens per sequence.
        important: number of completely positive tokens, and of completely negative ones.
        irrelevant: number of other tokens.

    Returns:
        Ids below ``important`` are completely positive, the next ``important`` completely
        negative, the others irrelevant. Tokens may be absent from the data.

    Example:
        >>> import attnmargin as am
        >>> data = am.embeddings.important_tokens(4, 3, seed=1)
        >>> data.ids.shape, sorted(set(data.statistics().kind[4:].tolist()) - {"unseen"})
        ((4, 3), ['irrelevant'])
    """
    check_whole(2, n=n, T=T)
    check_whole(important=important, irrelevant=irrelevant)
    if n % 2:
        raise InputError("n", repr(n), "an even number")
    rng = np.random.default_rng(seed_of("important tokens", base=seed))
    others = rng.integers(2 * important, 2 * important + irrelevant, (n // 2, T - 1))
    ids = np.repeat(others, 2, 0)
    y = np.tile([1, -1], n // 2)
    chosen = rng.integers(0, important, n) + np.where(y > 0, 0, important)
    rows = [np.insert(rng.permutation(row), rng.integers(0, T), own)
            for row, own in zip(ids, chosen, strict=True)]  # fmt: skip
    return LabelledTokens(np.stack(rows), y, 2 * important + irrelevant)


def level_tokens(
    n: int,
    T: int = 256,
    levels: tuple[float, ...] = LEVELS,
    irrelevant: int = 964,
    share: float = 0.05,
    seed: int = 0,
) -> tuple[LabelledTokens, NDArray[np.float64]]:
    """Draw from the K-level model (34), with ``|S_k| = 4 + 2^k`` tokens of each sign at level k.

        p(s | y) = (1 − δ̃) / |S̃|            for irrelevant s
                   δ̃ (1 − δ_k) / Σ_k |S_k|   for s in S_k^y
                   δ̃ δ_k / Σ_k |S_k|         for s in S_k^{−y}

    Returns:
        The data, and the exact posterior difference ``p(+1 | s) − p(−1 | s)`` of every token.
        Ids list positive tokens by level, then negative ones, then irrelevant ones.

    Example:
        >>> import attnmargin as am
        >>> data, difference = am.embeddings.level_tokens(10, T=8)
        >>> data.vocabulary, difference[:2].round(6).tolist(), float(difference[-1])
        (2048, [0.1, 0.1], 0.0)
    """
    check_whole(n=n, T=T, irrelevant=irrelevant)
    for name, number in (("share", share), *(("levels", level) for level in levels)):
        if not 0.0 < number < 1.0:
            raise InputError(name, repr(number), "numbers between 0 and 1")
    sizes = [4 + 2**k for k in range(1, len(levels) + 1)]
    own = np.repeat(np.array(levels), sizes)  # δ_k of the positive tokens
    m = len(own)
    difference = np.concatenate((1 - 2 * own, 2 * own - 1, np.zeros(irrelevant)))
    rest = np.full(irrelevant, (1.0 - share) / irrelevant)
    rng = np.random.default_rng(seed_of("level tokens", base=seed))
    y = rng.permutation(np.resize([1, -1], n))
    ids = np.empty((n, T), np.int64)
    for sign in (1, -1):
        first, second = (1 - own, own) if sign > 0 else (own, 1 - own)
        law = np.concatenate((share * first / m, share * second / m, rest))
        ids[y == sign] = rng.choice(len(law), (int((y == sign).sum()), T), p=law / law.sum())
    return LabelledTokens(ids, y, len(difference)), difference


def random_embeddings(data: LabelledTokens, d: int, seed: int = 0) -> EmbeddingModel:
    """Draw ``E_s, p ~ N(0, I/d)`` and a unit v, the initialisation of paper D.

    Example:
        >>> import attnmargin as am
        >>> am.embeddings.random_embeddings(am.embeddings.important_tokens(4, 3), d=16).E.shape
        torch.Size([10, 16])
    """
    check_whole(d=d)
    generator = torch.Generator().manual_seed(seed_of("embeddings", base=seed))
    drawn = torch.randn(data.vocabulary + 2, d, generator=generator, dtype=torch.float64)
    v = unit(drawn[-1])
    E, p = drawn[:-2] / d**0.5, drawn[-2] / d**0.5
    return EmbeddingModel(E, p, v, torch.from_numpy(data.ids), torch.from_numpy(data.y))
