"""What the tests of GPU kernels share: where they run, and problems of tokens and sets."""

import os
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import attnmargin as am

GPU = torch.cuda.is_available()
if not GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is imported
DEVICE = "cuda" if GPU else "cpu"

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
needs_gpu = pytest.mark.skipif(not GPU, reason="needs a GPU")


def tokens(n: int, T: int, d: int, trials: int) -> am.MarginProblem:
    data = am.random_data(n, T, d, trials=trials, name="fused")
    return am.token_problem(data.X, data.z, am.optimal_tokens(data))


def sets(n: int, T: int, d: int, trials: int) -> am.MarginProblem:
    """Sets of tokens, some of them hidden; with few dimensions most contradict each other."""
    rng = np.random.default_rng(d)
    X, z = rng.standard_normal((trials, n, T, d)), rng.standard_normal((trials, n, d))
    mask = rng.random((trials, n, T)) < 0.8
    mask[..., 0] = True
    chosen = (rng.random((trials, n, T)) < 0.2) & mask
    chosen[..., 0] |= ~chosen.any(-1)
    return am.token_problem(X, z, chosen, mask)
