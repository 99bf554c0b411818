"""Paper E, "Implicit Optimization Bias of Next-Token Prediction in Linear Models", as checks."""

import torch
from torch import Tensor

from attnmargin.decoders import DecoderPrediction, NextWords, predict_decoder
from attnmargin.theory.check import Check, outcome

# Least singular value, relative to the largest, of contexts that count as independent.
_INDEPENDENT = 1e-9


def check_decoder(data: NextWords) -> list[Check]:
    """Check the statements of paper E (Thrampoulidis, 2402.18551) on contexts and their words.

    Example:
        >>> import attnmargin as am
        >>> for check in am.theory.check_decoder(am.decoders.random_next_words(4, 6, 8, 3)):
        ...     print(f"{check.label}: {check.outcome}")
        E: Compatibility: holds
        E: Separability: holds
        E: Independent contexts: holds
        E: Entropy bound: holds
        E: Gradient descent: holds
    """
    found = predict_decoder(data)
    return [
        _compatibility(found),
        _separability(found),
        _independent(found),
        _entropy(found),
        _descent(found),
    ]


def _compatibility(found: DecoderPrediction) -> Check:
    meaning = "Some decoder has the probabilities of the data among the words that follow."
    numbers = {
        "least excess over the entropy": found.finite.excess,
        "distance of Newton's finite part to the exact one, at most": found.finite.error,
    }
    good = found.compatible
    return Check("E", "Compatibility", meaning, outcome(good, good | found.equations.infeasible),
                 numbers)  # fmt: skip


def _separability(found: DecoderPrediction) -> Check:
    meaning = "Some decoder keeps the words that follow level, and above all others."
    good = found.separable
    return Check("E", "Separability", meaning, outcome(good, good | found.solution.infeasible),
                 {"margin": found.solution.margin})  # fmt: skip


def _independent(found: DecoderPrediction) -> Check:
    """Check that contexts are independent: then W h_j can be chosen freely for each."""
    meaning = "The contexts are linearly independent, so that they are compatible and separable."
    m, d = found.data.contexts.shape[-2:]
    sizes = torch.linalg.svdvals(found.data.contexts)
    least = sizes[..., -1] / sizes[..., 0] if d >= m else torch.zeros_like(sizes[..., 0])
    return Check("E", "Independent contexts", meaning, outcome(least > _INDEPENDENT),
                 {"least singular value, relative": least})  # fmt: skip


def _both(found: DecoderPrediction) -> tuple[Tensor, Tensor]:
    """Return where both conditions hold, and where that is known."""
    both = found.compatible & found.separable
    known = both | found.equations.infeasible | found.solution.infeasible
    return both, known


def _entropy(found: DecoderPrediction) -> Check:
    meaning = "The infimum of the cross-entropy is the entropy of the data."
    both, known = _both(found)
    numbers = {"entropy": found.data.entropy, "infimum where separable": found.infimum}
    return Check("E", "Entropy bound", meaning, outcome(both, known), numbers)


def _descent(found: DecoderPrediction) -> Check:
    meaning = "Descent ends in W⋆ among words that follow, and grows along the NTP-SVM."
    both, known = _both(found)
    numbers = {"‖W⋆‖": found.equations.value, "‖W_mm‖": found.solution.value}
    note = "for steps that are short enough"
    return Check("E", "Gradient descent", meaning, outcome(both, known), numbers, note)
