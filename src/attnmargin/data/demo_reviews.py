"""Six short reviews of real words, with small embeddings of our own: the data of the demo."""

from dataclasses import dataclass
from typing import final

import torch

from attnmargin.data.attention_data import AttentionData


@final
@dataclass(frozen=True)
class Review:
    """A sentence, the aspect of the question, and a good (+1) or bad (−1) answer."""

    text: str
    aspect: str
    label: int

    @property
    def words(self) -> list[str]:
        """The words of the sentence: the tokens."""
        return self.text.split()


REVIEWS = (
    Review("the plot was dull but its music wonderful", "plot", -1),
    Review("the plot was dull but its music wonderful", "music", 1),
    Review("great food but slow service", "food", 1),
    Review("great food but slow service", "service", -1),
    Review("a boring story with brilliant acting", "story", -1),
    Review("a boring story with brilliant acting", "acting", 1),
)

# The first number is how good or bad a word is, set by hand; the others, drawn once at random,
# tell words apart.
EMBEDDINGS = {
    "a": (0.0, 0.1, -0.6, 0.3, 0.2, -0.3, -0.3, -0.1),
    "acting": (0.15, -0.1, -0.8, 0.3, -0.7, 0.7, -0.5, 1.1),
    "boring": (-0.9, 0.6, 0.4, 0.5, 0.1, -0.2, -0.1, 0.2),
    "brilliant": (0.9, -1.1, 0.5, -0.7, -0.1, 0.4, 0.2, 0.4),
    "but": (-0.15, -0.9, 0.0, 0.2, -0.3, 0.6, 2.1, -0.4),
    "dull": (-0.8, -0.7, -0.1, -0.4, -0.2, -0.1, -0.2, -0.4),
    "food": (0.1, -0.3, 0.5, 0.0, -0.4, -0.8, -1.0, -0.1),
    "great": (0.8, -0.4, -0.2, 0.2, 0.3, -0.1, 0.7, 0.1),
    "its": (0.05, -0.4, 0.3, 0.5, -0.3, 0.7, 0.5, -0.2),
    "music": (0.15, -0.4, 0.1, 0.1, -0.8, 0.0, -0.4, -0.9),
    "plot": (-0.05, 0.5, -0.2, -0.3, 0.0, 0.5, 0.2, 0.7),
    "service": (0.05, -0.3, 1.2, -0.3, 0.5, 0.4, -0.4, 0.3),
    "slow": (-0.6, 0.5, -0.4, 0.4, 0.8, -0.6, 0.0, 0.3),
    "story": (0.1, 0.2, -0.5, -0.2, 0.7, 0.0, -0.4, 0.2),
    "the": (0.0, 0.1, 0.0, 0.0, 0.2, -0.1, 0.2, -0.2),
    "was": (-0.1, -0.7, -0.3, -0.2, 0.0, 0.4, 0.2, -0.3),
    "with": (0.05, 0.5, -0.3, -0.3, 0.4, 0.5, -0.7, -0.5),
    "wonderful": (1.0, -0.2, 0.8, 0.0, 0.6, 0.5, 0.3, -0.4),
}


def review_data() -> AttentionData:
    """Build attention data: words are tokens, the aspect is the query.

    The head reads the first coordinate of the attention's output, so that the score of a word is
    how strongly it speaks for the label.

    >>> review_data()
    AttentionData(n=6, T=8, d=8, torch.float64)
    """
    E = {word: torch.tensor(row, dtype=torch.float64) for word, row in EMBEDDINGS.items()}
    v = torch.zeros(8, dtype=torch.float64)
    v[0] = 1.0
    return AttentionData(
        [torch.stack([E[word] for word in review.words]) for review in REVIEWS],
        torch.stack([E[review.aspect] for review in REVIEWS]),
        [float(review.label) for review in REVIEWS],
        v,
    )
