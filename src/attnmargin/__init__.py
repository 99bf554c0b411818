"""attnmargin tells what attention will learn: which tokens it selects, and by what margin."""

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
from attnmargin.norms import Frobenius, Lp, Norm, Nuclear
from attnmargin.problem import MarginProblem, margin_problem
from attnmargin.sample import random_data, seed_of
from attnmargin.selection import optimal_tokens, scores, tied_tokens
from attnmargin.solution import Solution
from attnmargin.solvers import solve, solve_path
from attnmargin.uniqueness import Uniqueness, uniqueness

__all__ = [
    "AttentionData",
    "AttnMarginError",
    "Certificate",
    "Frobenius",
    "InaccurateError",
    "InfeasibleError",
    "InputError",
    "Lp",
    "MarginProblem",
    "MissingPackageError",
    "Norm",
    "Nuclear",
    "Solution",
    "Status",
    "Uniqueness",
    "certify",
    "embedding_problem",
    "finite_problem",
    "label_problem",
    "margin_problem",
    "optimal_tokens",
    "random_data",
    "scores",
    "seed_of",
    "solve",
    "solve_path",
    "tied_tokens",
    "token_problem",
    "uniqueness",
]
