"""Paper I, "Dynamics of Spontaneous Topic Changes in Next Token Prediction", as checks."""

from typing import Any

import numpy as np
import torch

from attnmargin.graphs.topics import Topic, inversions
from attnmargin.theory.check import Check, number, outcome


def check_topics(topic: Topic, sequences: Any, labels: Any, K: int) -> list[Check]:
    """Check the statements of paper I (Jia, Diaz, 2501.06382) for a topic within a mixture.

    Example:
        >>> import attnmargin as am
        >>> one, two = am.graphs.random_topics(8, tokens=5, overlap=3, name="docs")
        >>> data = am.graphs.mixture((one, two), (200, 20), 4, np.random.default_rng(0))
        >>> for check in am.theory.check_topics(one, *data, 8):
        ...     print(f"{check.label}: {check.outcome}")
        I: Order of the graph: holds
        I: Order of attention: holds
    """
    strict, soft = inversions(topic, np.asarray(sequences), np.asarray(labels), K)
    pairs = number(len(soft))
    return [
        Check("I", "Order of the graph", "No pair that the topic orders is ranked the other way by "
              "the mixture's graphs.", outcome(torch.tensor(not strict.any())),
              {"pairs": pairs, "inverted": number(strict.sum())}),
        Check("I", "Order of attention", "Attention weighs the higher token of every such pair at "
              "least as much: then the topic changes only if lower tokens outnumber higher ones.",
              outcome(torch.tensor(not soft.any())),
              {"pairs": pairs, "inverted": number(soft.sum())}),
    ]  # fmt: skip
