"""attnmargin tells what attention will learn: which tokens it selects, and by what margin."""

from attnmargin.attention import gradient, logits, probabilities
from attnmargin.builders import embedding_problem, finite_problem, label_problem, token_problem
from attnmargin.certify import Certificate, Status, certify
from attnmargin.data import AttentionData
from attnmargin.errors import (
    AttnMarginError,
    InaccurateError,
    InfeasibleError,
    InputError,
    MissingPackageError,
)
from attnmargin.heads import FunctionHead, Head, QuadraticHead, ReLUHead, VocabularyHead
from attnmargin.losses import Loss
from attnmargin.measure import (
    bregman,
    correlation,
    fit_rate,
    largest_probability,
    misalignment,
    rank_profile,
    token_probability,
)
from attnmargin.norms import Frobenius, Lp, Norm, Nuclear
from attnmargin.optim import MirrorDescent
from attnmargin.problem import MarginProblem, margin_problem
from attnmargin.sample import random_data, seed_of
from attnmargin.selection import optimal_tokens, scores, tied_tokens
from attnmargin.solution import Solution
from attnmargin.solvers import solve, solve_path
from attnmargin.training import Trajectory, gradient_flow, regularization_path, train
from attnmargin.uniqueness import Uniqueness, uniqueness

__all__ = [
    "AttentionData",
    "AttnMarginError",
    "Certificate",
    "Frobenius",
    "FunctionHead",
    "Head",
    "InaccurateError",
    "InfeasibleError",
    "InputError",
    "Loss",
    "Lp",
    "MarginProblem",
    "MirrorDescent",
    "MissingPackageError",
    "Norm",
    "Nuclear",
    "QuadraticHead",
    "ReLUHead",
    "Solution",
    "Status",
    "Trajectory",
    "Uniqueness",
    "VocabularyHead",
    "bregman",
    "certify",
    "correlation",
    "embedding_problem",
    "finite_problem",
    "fit_rate",
    "gradient",
    "gradient_flow",
    "label_problem",
    "largest_probability",
    "logits",
    "margin_problem",
    "misalignment",
    "optimal_tokens",
    "probabilities",
    "random_data",
    "rank_profile",
    "regularization_path",
    "scores",
    "seed_of",
    "solve",
    "solve_path",
    "tied_tokens",
    "token_probability",
    "token_problem",
    "train",
    "uniqueness",
]
