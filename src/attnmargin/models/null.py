"""The null model: a random head with the same spectrum, on the same texts."""

import torch
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.models.head import Head


def random_head(head: Head, draw: int, seed: int = 0) -> Head:
    """Draw a head whose W has the same singular values, between random orthonormal frames.

    With rotary positions, where there are many W, the singular values of [W_Q, b_Q] and [W_K, b_K]
    are kept. The same seed, place and draw give the same head.
    """
    name = ("random head", head.layer, head.index, draw)
    generator = torch.Generator().manual_seed(seed_of(*name, base=seed))
    if head.rotary is None:
        singular = head.singular_values().cpu()
        queries = _frame(head.d + (head.b_Q is not None), len(singular), generator)
        keys = _frame(head.d, len(singular), generator) * singular
        return _like(head, queries.mT, keys.mT, 1.0)
    sides = []
    for W, bias in ((head.W_Q, head.b_Q), (head.W_K, head.b_K)):
        whole = W if bias is None else torch.cat((W, bias.unsqueeze(-1)), -1)
        U, singular, _ = torch.linalg.svd(whole.double().cpu(), full_matrices=False)
        sides.append(U * singular @ _frame(whole.shape[-1], len(singular), generator).mT)
    return _like(head, sides[0], sides[1], head.scale)


def _frame(d: int, m: int, generator: torch.Generator) -> Tensor:
    """Draw m orthonormal columns of length d, uniformly."""
    Q, R = torch.linalg.qr(torch.randn(d, m, dtype=torch.float64, generator=generator))
    return Q * R.diagonal().sign()


def _like(head: Head, queries: Tensor, keys: Tensor, scale: float) -> Head:
    """Build a head on the same texts; a last column beyond d is a bias."""
    b_Q, b_K = (own[:, head.d].to(head.hidden) if own.shape[-1] > head.d else None
                for own in (queries, keys))  # fmt: skip
    return Head(
        queries[:, : head.d].to(head.hidden), keys[:, : head.d].to(head.hidden), head.hidden,
        head.mask, biases=(b_Q, b_K), causal=head.causal, scale=scale, rotary=head.rotary,
        layer=head.layer, index=head.index, words=head.words,
    )  # fmt: skip
