"""What training of a linear decoder ends in, before it is trained."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.display import Summarised, range_words, tally_words
from attnmargin.decoders.contexts import NextWords
from attnmargin.decoders.finite import FinitePart, finite_part
from attnmargin.margin.explain import explain_infeasible
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve

_BOTH = "compatible and separable"
_ONLY = {
    (True, True): _BOTH,
    (False, True): "separable, not compatible",
    (True, False): "compatible, not separable",
    (False, False): "neither compatible nor separable",
}
_OPEN = "not decided"


@final
@dataclass(frozen=True, eq=False, repr=False)
class DecoderPrediction(Summarised):
    """What gradient descent on a linear decoder ends in: ``W ≈ finite + log t · direction``.

    Where contexts are compatible and separable, this is a theorem (Thrampoulidis, 2402.18551): the
    part of W in the span of words that follow tends to ``finite``, the rest grows along
    ``direction``, and the cross-entropy tends to ``entropy``, which no W attains. Where they are
    separable only, ``finite`` is the best that the span can do, and the loss tends to ``infimum``.
    """

    data: NextWords
    finite: FinitePart
    equations: Solution  # W⋆, where the contexts are compatible
    solution: Solution  # NTP-SVM, where they are separable

    def summary(self) -> dict[str, str]:
        """Return verdict, entropy and margin, by name."""
        return {
            "verdict": tally_words(self.verdict),
            "entropy": f"{range_words(self.data.entropy)} nats, the lower bound of the loss",
            "infimum": f"{range_words(self.infimum)} nats",
            "margin": range_words(self.solution.margin),
        }

    @property
    def compatible(self) -> Tensor:
        """Whether some W has the probabilities of the data, bool ``(*B,)``."""
        return self.equations.optimal

    @property
    def separable(self) -> Tensor:
        """Whether some W separates the words that follow from the others, bool ``(*B,)``."""
        return self.solution.feasible

    @cached_property
    def verdict(self) -> Any:
        """Both answers in words, a string or a numpy array of them."""
        known = (self.compatible | self.equations.infeasible) & (
            self.separable | self.solution.infeasible
        )
        words = np.empty(known.shape, dtype=object)
        for index in np.ndindex(*known.shape):
            answer = (bool(self.compatible[index]), bool(self.separable[index]))
            words[index] = _ONLY[answer] if bool(known[index]) else _OPEN
        return words if words.shape else str(words[()])

    @property
    def direction(self) -> Tensor:
        """``W_mm/‖W_mm‖`` ``(*B, V, d)``; NaN where the contexts are not separable."""
        return self.solution.W / self.solution.value[..., None, None]

    @cached_property
    def infimum(self) -> Tensor:
        """Infimum of the loss where the contexts are separable, ``(*B,)``; NaN elsewhere."""
        best = self.data.entropy + self.finite.excess.where(~self.compatible, 0.0)
        return best.where(self.separable, torch.nan)

    def explain(self) -> str:
        """Say what training ends in, or which contexts contradict each other, of a single one."""
        if self.verdict == _BOTH:
            return (
                f"{_BOTH}: the loss tends to the entropy of {float(self.data.entropy):.4g} nats, "
                f"and the decoder grows with margin {float(self.solution.margin):.3g}"
            )
        reasons = [str(self.verdict)]
        for name, own in (("compatible", self.equations), ("separable", self.solution)):
            if bool(own.infeasible):
                reasons.append(f"not {name}, since {self._contradiction(own)}")
        return "; ".join(reasons)

    def _contradiction(self, solution: Solution) -> str:
        """Write the proof of infeasibility, with the names of contexts and words."""
        words = explain_infeasible(solution.problem, solution.dual)
        words = _named(words, "context", self.data.names)
        return _named(words, "word", self.data.words)


def _named(text: str, kind: str, names: tuple[str, ...] | None) -> str:
    """Replace the numbers of contexts or words by their names.

    >>> _named("context 1 wants words 0 and 2 level", "word", ("a", "b", "c"))
    "context 1 wants words 'a' and 'c' level"
    """
    if names is None:
        return text

    def name(found: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda number: repr(names[int(number[0])]), found[0])

    return re.sub(rf"\b{kind}(s \d+(, \d+)* and| )\s*\d+", name, text)


def predict_decoder(data: NextWords) -> DecoderPrediction:
    """Predict what gradient descent on the cross-entropy of a linear decoder ends in.

    Compatibility and separability are decided by solving both problems, each with a proof: a
    solution or a contradiction. The finite part is found by Newton's method, with a bound on its
    error.

    Example:
        >>> import attnmargin as am
        >>> data = am.decoders.next_words([[1.0, 0.0], [0.0, 1.0]], [[3, 1, 0], [0, 0, 4]])
        >>> found = am.decoders.predict_decoder(data)
        >>> found.explain()
        'compatible and separable: the loss tends to the entropy of 0.2812 nats, and the decoder
        grows with margin 0.866'
        >>> clash = am.decoders.next_words([[1.0], [2.0]], [[3, 1, 0], [0, 1, 1]])
        >>> am.decoders.predict_decoder(clash).verdict
        'compatible, not separable'
    """
    return DecoderPrediction(data, finite_part(data), solve(data.equations), solve(data.problem))
