"""Random instances of the papers, with seeds by name: same name, same bits."""

import torch
from torch import Tensor

from attnmargin.base.checks import check_number, check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.base.unit import unit
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.gaps import best_gap


def normal(shape: tuple[int, ...], generator: torch.Generator, sphere: bool = True) -> Tensor:
    """Draw Gaussian vectors in float64, scaled to the unit sphere on request."""
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return unit(x) if sphere else x


def _one(
    n: int, T: int, d: int, generator: torch.Generator, sphere: bool, min_gap: float
) -> list[Tensor]:
    sizes = n * T, n, 1
    rows = torch.cat([normal((size, d), generator, sphere=False) for size in sizes])
    X, z, v = (unit(rows) if sphere else rows).split(sizes)
    X, v = X.unflatten(0, (n, T)), v[0]
    y = torch.randint(0, 2, (n,), generator=generator).to(torch.float64) * 2 - 1
    for _ in range(10_000):
        small = best_gap(y[:, None] * (X @ v)) < min_gap
        if not bool(small.any()):
            return [X, z, y, v]
        X[small] = normal((int(small.sum()), T, d), generator, sphere)
    raise InputError("min_gap", f"{min_gap:g}", "a gap that random tokens can reach")


def random_data(
    n: int,
    T: int,
    d: int,
    trials: int | None = None,
    *,
    name: str = "sample",
    seed: int = 0,
    distribution: str = "sphere",
    self_attention: bool = False,
    min_gap: float = 0.0,
) -> AttentionData:
    """Draw instances as in papers A and B: tokens, queries and head on the unit sphere.

    Each trial has a seed of its own, ``seed_of(name, trial, base=seed)``: trial 7 is the same
    whether 10 or 1000 are drawn. Labels are ±1 at random, all in float64 on the CPU.

    Args:
        trials: the batch; None for one instance without batch dimension.
        distribution: "sphere" (papers A, B, C) or "gaussian".
        self_attention: the query is the first token, ``z_i = x_i1`` (paper A, Section 2).
        min_gap: least distance of the best to the second best score; sequences below it are
            drawn again (paper A, Appendix F: 0.1 in figures 2, 5 and 6).

    Example:
        >>> import attnmargin as am
        >>> am.random_data(6, 8, 10, trials=100, name="A:fig7")
        AttentionData(batch (100,), n=6, T=8, d=10, torch.float64)
    """
    if distribution not in ("sphere", "gaussian"):
        raise InputError("distribution", repr(distribution), "'sphere' or 'gaussian'")
    check_whole(n=n, T=T, d=d)
    check_whole(0, trials=0 if trials is None else trials)
    min_gap = check_number("min_gap", min_gap, "a number that is not negative")
    if not min_gap >= 0.0:
        raise InputError("min_gap", f"{min_gap:g}", "a number that is not negative")
    drawn: list[list[Tensor]] = []
    for trial in range(1 if trials is None else trials):
        generator = torch.Generator().manual_seed(seed_of(name, trial, base=seed))
        drawn.append(_one(n, T, d, generator, distribution == "sphere", min_gap))
    shapes: list[tuple[int, ...]] = [(n, T, d), (n, d), (n,), (d,)]
    stacked = [
        torch.stack(parts) if parts else torch.empty((0, *shape), dtype=torch.float64)
        for parts, shape in zip(list(zip(*drawn, strict=True)) or [()] * 4, shapes, strict=True)
    ]
    X, z, y, v = stacked if trials is not None else [part[0] for part in stacked]
    return AttentionData(X, X[..., 0, :].clone() if self_attention else z, y, v)
