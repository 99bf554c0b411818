"""J:chain, J:samples, J:trajectory: attention as a Markov chain, its estimation, its collapse."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.graphs.markov import ContextChain, fit_chain
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_most,
    largest_of,
    mean_of,
    more_than,
    share_of,
    stated,
)
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import GREY, Panel, Picture, Series

_COUNTS = (1000, 3000, 10_000, 30_000, 100_000)
_SIZES = (3, 4, 6, 8)
_K, _T, _MANY = 4, 6, 30_000
_STEPS = 100_000
_MOMENTS = (100, 1000, 10_000, 100_000)


def random_chain(K: int, *names: Any) -> tuple[ContextChain, torch.Generator]:
    """Draw a chain with logits uniform in ±1, and the generator that goes on."""
    generator = torch.Generator().manual_seed(seed_of("J", *names))
    logits = 2.0 * torch.rand(K, K, generator=generator, dtype=torch.float64) - 1.0
    return ContextChain(logits.softmax(-1)), generator


def random_prompts(n: int, K: int, generator: torch.Generator) -> Tensor:
    """Draw n prompts of tokens."""
    return torch.randint(K, (n, _T), generator=generator)


def attention_error(K: int, seed: int, trial: int) -> float:
    """Compare a chain with the softmax attention of its weights, on random prompts."""
    chain, generator = random_chain(K, "attention", K, seed, trial)
    E = torch.randn(K, K + 2, generator=generator, dtype=torch.float64)
    W, worst = chain.weights(E), 0.0
    for prompt in random_prompts(20, K, generator):
        X = E[prompt]
        attention = torch.softmax(X @ W @ X[-1], 0)
        mass = torch.zeros(K, dtype=E.dtype).index_add_(0, prompt, attention)
        worst = max(worst, float((mass - chain.next(prompt)).abs().max()))
    return worst


def fisher(chain: ContextChain, prompts: Tensor) -> Tensor:
    """Compute the information ``(K, K, K)`` of prompts on the logits of every row."""
    weight = torch.nn.functional.one_hot(prompts, chain.K).sum(1) * chain.P[prompts[:, -1]]
    p = weight / weight.sum(-1, keepdim=True)
    each = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    found = torch.zeros(chain.K, chain.K, chain.K, dtype=torch.float64)
    return found.index_add_(0, prompts[:, -1], each)


def least_error(information: Tensor) -> float:
    """Return Cramér and Rao's bound on the squared error of logits with mean zero, of all rows.

    The information of logits has the null vector of ones.
    """
    scale = information.diagonal(dim1=1, dim2=2).mean()
    ones = torch.full(information.shape[1:], 1.0 / information.shape[-1], dtype=torch.float64)
    inverse = torch.linalg.inv(information + scale * ones) - ones / scale
    return float(inverse.diagonal(dim1=1, dim2=2).sum())


def _centred(P: Tensor) -> Tensor:
    logits = P.log()
    return logits - logits.mean(-1, keepdim=True)


def _samples(task: Task) -> Arrays:
    """Estimate chains from n prompts; compare squared errors with Cramér and Rao's bound."""
    K, n = task.settings["K"], task.settings["n"]
    found: dict[str, list[float]] = {"error": [], "square": [], "bound": []}
    for trial in range(task.trials):
        chain, generator = random_chain(K, "samples", K, task.seed, trial)
        prompts = random_prompts(n, K, generator)
        estimate = fit_chain(prompts.numpy(), chain.sample(prompts, generator).numpy(), K)
        found["error"].append(float((estimate.P - chain.P).norm()))
        found["square"].append(float((_centred(estimate.P) - _centred(chain.P)).square().sum()))
        found["bound"].append(least_error(fisher(chain, prompts)))
        task.progress(trial + 1, task.trials)
    return {name: np.array(values) for name, values in found.items()}


def _attention(task: Task) -> Arrays:
    """Attention against the chain; data whose prompts never connect two groups of tokens."""
    K = task.settings["K"]
    errors = [attention_error(K, task.seed, trial) for trial in range(task.trials)]
    apart: list[bool] = []
    together: list[bool] = []
    for trial in range(task.trials):
        chain, generator = random_chain(K, "coverage", K, task.seed, trial)
        prompts = random_prompts(2000, K, generator)
        split = prompts % 2 + 2 * ((prompts // 2) % (K // 2))
        split = split - split % 2 + split[:, :1] % 2  # all even, or all odd
        split[:, -1] = 0  # the last token is part of one group alone: it is no choice for the other
        for parts, kept in ((split[split[:, 0] % 2 == 0], apart), (prompts, together)):
            labels = chain.sample(parts, generator)
            kept.append(bool(fit_chain(parts.numpy(), labels.numpy(), K).identified[0]))
    return {"error": np.array(errors), "apart": np.array(apart), "together": np.array(together)}


def _trajectory(task: Task) -> Arrays:
    """Let chains go on from a prompt with every token once; entropies of what they have drawn."""
    K = task.settings["K"]
    own: list[list[float]] = []
    for trial in range(task.trials):
        chain, _ = random_chain(K, "trajectory", K, task.seed, trial)
        if task.settings["uniform"]:
            chain = ContextChain(torch.full((K, K), 1.0 / K, dtype=torch.float64))
        seed = seed_of("J", "steps", K, task.seed, trial) >> 16
        drawn = chain.trajectory(list(range(K)), _STEPS, seed)
        own.append([entropy(np.bincount(drawn[:m], minlength=K)) for m in _MOMENTS])
        task.progress(trial + 1, task.trials)
    return {"entropy": np.array(own)}


def entropy(counts: NDArray[Any]) -> float:
    """Compute the entropy of shares, in nats.

    >>> round(entropy(np.array([1, 1])), 4), abs(entropy(np.array([5, 0])))
    (0.6931, 0.0)
    """
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def urn_entropy(K: int) -> float:
    """Return the mean entropy of Pólya's urn with one ball of each colour: ``Σ_{k=2}^K 1/k``.

    Its shares tend to a uniform point of the simplex.
    """
    return float(sum(1.0 / k for k in range(2, K + 1)))


def _exponent(x: Any, rows: list[NDArray[Any]]) -> Measured:
    """Fit the exponent of values ``rows[k]`` at ``x[k]``, trial by trial."""
    across = np.log(np.asarray(x, dtype=float))
    across -= across.mean()
    y = np.log(np.stack(rows))
    return mean_of((across[:, None] * (y - y.mean(0))).sum(0) / (across**2).sum())


def _sample_claims(results: Results) -> list[Claim]:
    rows = [results[f"n{n}"]["error"] for n in _COUNTS]
    slope = _exponent(_COUNTS, rows)
    last = results[f"n{_COUNTS[-1]}"]
    ratio = mean_of(last["square"] / last["bound"])
    off = (
        None if slope.value is None else Measured(abs(slope.value + 0.5), slope.error, slope.count)
    )
    far = (
        None if ratio.value is None else Measured(abs(ratio.value - 1.0), ratio.error, ratio.count)
    )
    return [
        at_most("exponent of ‖P̂ − P‖ against the number of prompts, from −1/2",
                Measured(None, count=0) if off is None else off, 0.02),
        at_most("squared error of the logits over Cramér and Rao's bound, from 1",
                Measured(None, count=0) if far is None else far, 0.1),
    ]  # fmt: skip


def _sample_measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"n ‖P̂ − P‖²/K² at K = {K}, prompts of {_T} tokens",
                    float((_MANY * results[f"K{K}"]["error"] ** 2 / K**2).mean()))
        for K in _SIZES
    ]  # fmt: skip


def _chain_claims(results: Results) -> list[Claim]:
    every = list(results.values())
    worst = largest_of(np.concatenate([own["error"] for own in every]))
    apart = np.concatenate([own["apart"] for own in every])
    together = share_of(np.concatenate([own["together"] for own in every]))
    return [
        at_most("attention against the chain, largest difference", worst, 1e-12),
        stated("rows that are called determined although no prompt connects two groups",
               Measured(float(apart.sum()), count=len(apart)), "0", not apart.any()),
        stated("rows determined by prompts of all tokens", together, "1", together.value == 1.0),
    ]  # fmt: skip


def _trajectory_claims(results: Results) -> list[Claim]:
    uniform, random = (results[key]["entropy"] for key in ("uniform", "random"))
    off = mean_of(uniform[:, -1])
    low, high = off.span()
    return [
        more_than(f"entropy of the first {_MOMENTS[0]} tokens, more than of {_STEPS:,}",
                  random[:, 0], random[:, -1]),
        stated("equal weights: mean entropy, Σ 1/k of Pólya's urn within its interval", off,
               f"{urn_entropy(_K):.4f}", low <= urn_entropy(_K) <= high),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    random = results["random"]["entropy"]
    share = float((random[:, -1] < 0.5 * random[:, 0]).mean())
    return [
        *(Measurement(f"mean entropy of the first {m:,} tokens", float(own.mean()))
          for m, own in zip(_MOMENTS, random.T, strict=True)),
        Measurement(f"share of chains whose entropy halves by {_STEPS:,} tokens", share),
    ]  # fmt: skip


def _sample_pictures(results: Results) -> list[Picture]:
    errors = mean_curve("‖P̂ − P‖", _COUNTS, [results[f"n{n}"]["error"] for n in _COUNTS], log=True)
    roots = [np.sqrt(results[f"n{n}"]["square"]) for n in _COUNTS]
    bounds = [np.sqrt(results[f"n{n}"]["bound"].mean()) for n in _COUNTS]
    bound: Series = {"kind": "line", "name": "Cramér and Rao", "x": np.array(_COUNTS),
                     "y": np.array(bounds), "colour": GREY, "style": 1}  # fmt: skip
    series = [errors, mean_curve("error of the logits", _COUNTS, roots, log=True, colour=1), bound]
    squares = [results[f"K{K}"]["error"] ** 2 for K in _SIZES]
    sizes = mean_curve("", _SIZES, squares, log=True)
    panels = [
        Panel(title=f"K = {_K}", axes=("prompts (n)", "error"), series=series,
              logarithmic=(True, True)),
        Panel(title=f"n = {_MANY:,}", axes=("tokens (K)", "‖P̂ − P‖²"),
              series=[sizes], logarithmic=(True, True)),
    ]  # fmt: skip
    caption = (
        "Chains estimated by maximum likelihood from prompts of six tokens. The error falls like "
        "n^(−1/2) and meets Cramér and Rao's bound."
    )
    return [Picture(name="samples", caption=caption, panels=panels, columns=2)]


def _trajectory_pictures(results: Results) -> list[Picture]:
    series = [
        mean_curve(words, _MOMENTS, list(results[key]["entropy"].T), colour=k)
        for k, (key, words) in enumerate((("random", "random chains"), ("uniform", "Pólya's urn")))
    ]
    level: Series = {"kind": "level", "name": "its mean", "x": np.zeros(1),
                     "y": np.array([urn_entropy(_K)]), "colour": GREY, "style": 1}  # fmt: skip
    panel = Panel(title=f"one trajectory, K = {_K}", axes=("tokens drawn", "entropy (nats)"),
                  series=[*series, level], logarithmic=(True, False))  # fmt: skip
    caption = (
        "Every token that was drawn counts again: a few winners take the context over, and the "
        "trajectory repeats them."
    )
    return [Picture(name="trajectory", caption=caption, panels=[panel], columns=1)]


EXPERIMENTS = (
    Experiment("J:chain", "Attention is a Markov chain conditioned on its context", 20,
               tuple(Point(f"K{K}", {"K": K}) for K in (4, 6, 8)),
               _attention, _chain_claims, lambda results: []),
    Experiment("J:samples", "Chains estimated from prompts", 50,
               (*(Point(f"n{n}", {"K": _K, "n": n}) for n in _COUNTS),
                *(Point(f"K{K}", {"K": K, "n": _MANY}) for K in _SIZES)),
               _samples, _sample_claims, _sample_pictures, measurements=_sample_measurements),
    Experiment("J:trajectory", "One trajectory collapses to a few tokens", 200,
               (Point("random", {"K": _K, "uniform": False}),
                Point("uniform", {"K": _K, "uniform": True})),
               _trajectory, _trajectory_claims, _trajectory_pictures,
               measurements=_measurements),
)  # fmt: skip
