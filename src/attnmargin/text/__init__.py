"""Corpora and word pieces; the classifier of paper B; decisive tokens (paper D)."""

from attnmargin.text.classifier.training import Recipe, TextRun, train_text
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from attnmargin.text.corpus import Corpus, read_corpus
from attnmargin.text.download import download_reviews
from attnmargin.text.pieces import Pieces, word_list, word_pieces
from attnmargin.text.tokens.cleaning import Cleaning, clean_tokens
from attnmargin.text.tokens.importance import TokenImportance, token_importance
from attnmargin.text.tokens.training import TokenRecipe, TokenRun, train_tokens

__all__ = [
    "Cleaning",
    "Corpus",
    "Pieces",
    "Recipe",
    "Shape",
    "TextClassifier",
    "TextRun",
    "TokenImportance",
    "TokenRecipe",
    "TokenRun",
    "clean_tokens",
    "download_reviews",
    "read_corpus",
    "token_importance",
    "train_text",
    "train_tokens",
    "word_list",
    "word_pieces",
]
