"""attnmargin tells what attention will learn: which tokens it selects, and by what margin."""

from attnmargin.attention.heads import (
    FunctionHead,
    Head,
    QuadraticHead,
    ReLUHead,
    ScoreHead,
    VocabularyHead,
)
from attnmargin.attention.losses import Loss
from attnmargin.attention.score import (
    high_tokens,
    low_tokens,
    optimal_tokens,
    score_gaps,
    scores,
    support_tokens,
    tied_tokens,
)
from attnmargin.attention.softmax import gradient, logits, probabilities
from attnmargin.base.errors import (
    AttnMarginError,
    InaccurateError,
    InfeasibleError,
    InputError,
    MissingPackageError,
)
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data, random_next_tokens, seed_of
from attnmargin.embeddings.instances import (
    LabelledTokens,
    important_tokens,
    level_tokens,
    random_embeddings,
)
from attnmargin.embeddings.model import EmbeddingModel, FirstStep, first_step, other_selections
from attnmargin.embeddings.statistics import TokenStatistics, token_statistics
from attnmargin.graphs import (
    Automaton,
    CyclicData,
    Next,
    TokenGraph,
    TokenGraphs,
    cyclic_basis,
    cyclic_correction,
    cyclic_data,
    cyclic_part,
    graph_problem,
    pseudo_graphs,
    read_graphs,
    read_sequences,
    token_graphs,
)
from attnmargin.graphs.next_token import next_token_data, next_token_head
from attnmargin.margin.alternatives import Uniqueness, uniqueness
from attnmargin.margin.builders import (
    embedding_problem,
    finite_problem,
    label_problem,
    token_problem,
)
from attnmargin.margin.certificate import Certificate, Status, certify
from attnmargin.margin.norms import Frobenius, Lp, Norm, Nuclear
from attnmargin.margin.problem import MarginProblem, margin_problem
from attnmargin.margin.solution import Solution
from attnmargin.optim.mirror_descent import MirrorDescent
from attnmargin.prediction.confirmation import Confirmation, confirm
from attnmargin.prediction.prediction import Prediction, Verdict, predict
from attnmargin.selections.composition import optimal_composition
from attnmargin.selections.cones import in_direction_cone, score_barrier
from attnmargin.selections.local_optimality import Locality, label_margin, locality, locally_optimal
from attnmargin.selections.search import Search, local_selections
from attnmargin.solvers import solve, solve_path
from attnmargin.text.classifier.training import Recipe, TextRun, train_text
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from attnmargin.text.corpus import Corpus, read_corpus
from attnmargin.text.download import download_reviews
from attnmargin.text.pieces import Pieces, word_list, word_pieces
from attnmargin.text.tokens.cleaning import Cleaning, clean_tokens
from attnmargin.text.tokens.importance import TokenImportance, token_importance
from attnmargin.text.tokens.training import TokenRecipe, TokenRun, train_tokens
from attnmargin.theory import Check, Outcome, check_embeddings, check_next_token, check_theory
from attnmargin.training import Guarded, Trajectory, gradient_flow, regularization_path, train
from attnmargin.training.measures import (
    bregman,
    composed_correlation,
    correlation,
    fit_rate,
    largest_probability,
    misalignment,
    rank_profile,
    token_probability,
)

__all__ = [
    "AttentionData",
    "AttnMarginError",
    "Automaton",
    "Certificate",
    "Check",
    "Cleaning",
    "Confirmation",
    "Corpus",
    "CyclicData",
    "EmbeddingModel",
    "FirstStep",
    "Frobenius",
    "FunctionHead",
    "Guarded",
    "Head",
    "InaccurateError",
    "InfeasibleError",
    "InputError",
    "LabelledTokens",
    "Locality",
    "Loss",
    "Lp",
    "MarginProblem",
    "MirrorDescent",
    "MissingPackageError",
    "Next",
    "Norm",
    "Nuclear",
    "Outcome",
    "Pieces",
    "Prediction",
    "QuadraticHead",
    "ReLUHead",
    "Recipe",
    "ScoreHead",
    "Search",
    "Shape",
    "Solution",
    "Status",
    "TextClassifier",
    "TextRun",
    "TokenGraph",
    "TokenGraphs",
    "TokenImportance",
    "TokenRecipe",
    "TokenRun",
    "TokenStatistics",
    "Trajectory",
    "Uniqueness",
    "Verdict",
    "VocabularyHead",
    "bregman",
    "certify",
    "check_embeddings",
    "check_next_token",
    "check_theory",
    "clean_tokens",
    "composed_correlation",
    "confirm",
    "correlation",
    "cyclic_basis",
    "cyclic_correction",
    "cyclic_data",
    "cyclic_part",
    "download_reviews",
    "embedding_problem",
    "finite_problem",
    "first_step",
    "fit_rate",
    "gradient",
    "gradient_flow",
    "graph_problem",
    "high_tokens",
    "important_tokens",
    "in_direction_cone",
    "label_margin",
    "label_problem",
    "largest_probability",
    "level_tokens",
    "local_selections",
    "locality",
    "locally_optimal",
    "logits",
    "low_tokens",
    "margin_problem",
    "misalignment",
    "next_token_data",
    "next_token_head",
    "optimal_composition",
    "optimal_tokens",
    "other_selections",
    "predict",
    "probabilities",
    "pseudo_graphs",
    "random_data",
    "random_embeddings",
    "random_next_tokens",
    "rank_profile",
    "read_corpus",
    "read_graphs",
    "read_sequences",
    "regularization_path",
    "score_barrier",
    "score_gaps",
    "scores",
    "seed_of",
    "solve",
    "solve_path",
    "support_tokens",
    "tied_tokens",
    "token_graphs",
    "token_importance",
    "token_probability",
    "token_problem",
    "token_statistics",
    "train",
    "train_text",
    "train_tokens",
    "uniqueness",
    "word_list",
    "word_pieces",
]
