"""Corpora and word pieces; the classifier of paper B; decisive tokens (paper D)."""

from attnmargin.text.classifier.training import Recipe, TextRun, train_text
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from attnmargin.text.corpus import Corpus, read_corpus
from attnmargin.text.download import download_reviews
from attnmargin.text.pieces import Pieces, word_list, word_pieces
from attnmargin.text.tokens.agreement import ModelAgreement, model_agreement
from attnmargin.text.tokens.cleaning import Cleaning, clean_tokens
from attnmargin.text.tokens.counts import TextCounts, count_texts
from attnmargin.text.tokens.evidence import Evidence
from attnmargin.text.tokens.importance import TokenImportance, class_importance, token_importance
from attnmargin.text.tokens.planted import PlantedCorpus, planted_corpus
from attnmargin.text.tokens.training import TokenRecipe, TokenRun, train_tokens

__all__ = [
    "Cleaning",
    "Corpus",
    "Evidence",
    "ModelAgreement",
    "Pieces",
    "PlantedCorpus",
    "Recipe",
    "Shape",
    "TextClassifier",
    "TextCounts",
    "TextRun",
    "TokenImportance",
    "TokenRecipe",
    "TokenRun",
    "class_importance",
    "clean_tokens",
    "count_texts",
    "download_reviews",
    "model_agreement",
    "planted_corpus",
    "read_corpus",
    "token_importance",
    "train_text",
    "train_tokens",
    "word_list",
    "word_pieces",
]
