"""Paper D: signed frequencies of tokens, the model, its first step, and the flow of ⟨cls⟩."""

from attnmargin.embeddings.instances import (
    LabelledTokens,
    important_tokens,
    level_tokens,
    random_embeddings,
)
from attnmargin.embeddings.model import EmbeddingModel, FirstStep, first_step, other_selections
from attnmargin.embeddings.statistics import TokenStatistics, token_statistics

__all__ = [
    "EmbeddingModel",
    "FirstStep",
    "LabelledTokens",
    "TokenStatistics",
    "first_step",
    "important_tokens",
    "level_tokens",
    "other_selections",
    "random_embeddings",
    "token_statistics",
]
