"""Instances of paper D have what they promise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.embeddings.instances import LEVELS


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), T=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_important_tokens_obey_assumption_4(seed: int, n: int, T: int) -> None:
    data = am.embeddings.important_tokens(2 * n, T, important=2, irrelevant=3, seed=seed)
    statistics = data.statistics()
    complete = statistics.complete[data.ids]
    assert (complete.sum(-1) == 1).all()
    assert statistics.irrelevant[data.ids[~complete]].all()
    assert data.ids.shape == (2 * n, T)


def test_the_model_of_levels_has_its_posteriors() -> None:
    data, difference = am.embeddings.level_tokens(600, T=256, seed=0)
    assert data.vocabulary == len(difference) == 2048
    assert (difference != 0).sum() == 2 * sum(4 + 2**k for k in range(1, 9)) == 2048 - 964
    statistics = data.statistics()
    assert statistics.count.sum() == 600 * 256
    for k, level in enumerate(LEVELS):
        of_level = np.isclose(difference, 1 - 2 * level)
        assert of_level.sum() == 4 + 2 ** (k + 1)
        seen, positive = statistics.count[of_level].sum(), statistics.positive[of_level].sum()
        assert abs(positive / seen - (1 - level)) < 4 * (level * (1 - level) / seen) ** 0.5 + 1e-3


def test_irrelevant_tokens_of_the_levels_are_more_frequent() -> None:
    """(1 − δ̃)/|S̃| over δ̃/(2 Σ |S_k|): 0.95/964 over 0.05/1084; equal for all relevant tokens."""
    data, difference = am.embeddings.level_tokens(2000, T=256, seed=1)
    count = data.statistics().count
    relevant = difference != 0
    ratio = count[~relevant].mean() / count[relevant].mean()
    wanted = (0.95 / 964) / (0.05 / 1084)
    spread = wanted / count[relevant].sum() ** 0.5  # count of relevant tokens: nearly Poisson
    assert abs(ratio - wanted) < 4 * spread
    assert abs(wanted - 21.4) < 0.05
    extreme = np.abs(difference) > 0.95
    assert abs(count[extreme].mean() / count[relevant].mean() - 1.0) < 0.05
