"""All experiments, by name: those of the papers A to D and of papers that build on them."""

from functools import cache

from attnmargin.base.errors import InputError
from attnmargin.papers.a import (
    alignment,
    directions,
    mixtures,
    ranks,
    relu,
    section5,
    section7,
    section9,
    selections,
)
from attnmargin.papers.a import paths as a_paths
from attnmargin.papers.b import attention, examples, table
from attnmargin.papers.b import paths as b_paths
from attnmargin.papers.c import descent, graphs, lemmas, local
from attnmargin.papers.d import layers, theory, tokens
from attnmargin.papers.e import conditions, plane
from attnmargin.papers.e import descent as e_descent
from attnmargin.papers.engine.experiment import Experiment
from attnmargin.papers.f import prompts
from attnmargin.papers.g import flow, penalty
from attnmargin.papers.g import text as g_text
from attnmargin.papers.h import rates as h_rates
from attnmargin.papers.i import topics
from attnmargin.papers.j import chains
from attnmargin.papers.n import attention as n_attention
from attnmargin.papers.n import classes
from attnmargin.papers.p import certified, mirror, rates, starts
from attnmargin.papers.t import evidence, noise

_FILES = (
    *(directions, alignment, selections, section5, section7, section9, ranks),
    *(mixtures, relu, a_paths),
    *(examples, b_paths, table, attention),
    *(descent, graphs, lemmas, local),
    *(layers, theory, tokens),
    *(plane, e_descent, conditions),
    *(flow, penalty, g_text),
    *(certified, mirror, starts, rates),
    *(prompts,),
    *(h_rates,),
    *(topics, chains),
    *(n_attention, classes),
    *(evidence, noise),
)


# What each letter stands for; a paper is listed as soon as it has an experiment.
PAPERS = {
    "A": "Transformers as Support Vector Machines",
    "B": "Optimizing Attention with Mirror Descent",
    "C": "Mechanics of Next Token Prediction with Self-Attention",
    "D": "Attention with Trained Embeddings Provably Selects Important Tokens",
    "E": "Implicit Optimization Bias of Next-Token Prediction in Linear Models (2402.18551)",
    "F": "Max-Margin Token Selection in Attention Mechanism (2306.13596)",
    "G": "Weight Decay Induces Low-Rank Attention Layers (2410.23819)",
    "H": "Implicit Bias and Fast Convergence Rates for Self-Attention (2402.05738)",
    "I": "Dynamics of Spontaneous Topic Changes in Next Token Prediction (2501.06382)",
    "J": "From Self-Attention to Markov Models (2402.13512)",
    "N": "The norm that each optimiser reaches",
    "P": "Predictions of runs",
    "T": "Texts and sequences whose truth is planted",
}


@cache
def experiments() -> dict[str, Experiment]:
    """Return every reproducible figure, in the order of the papers."""
    found = [experiment for file in _FILES for experiment in file.EXPERIMENTS]
    return {experiment.name: experiment for experiment in sorted(found, key=_order)}


def _order(experiment: Experiment) -> tuple[str, int, str]:
    """Return the sort key: paper, then figure number, then name."""
    paper, figure = experiment.name.split(":")
    digits = "".join(c for c in figure.split("-")[0] if c.isdigit())
    number = int(digits) if figure.startswith("fig") else 1000
    return paper, number, figure


def find(name: str) -> Experiment:
    """Return the experiment called ``name``, such as "A:fig7"."""
    known = experiments()
    if name not in known:
        raise InputError("figure", repr(name), f"one of {', '.join(known)}, or a paper such as A")
    return known[name]


def names_of(words: list[str]) -> list[str]:
    """Expand words to experiment names: single ones, or all of a paper."""
    known = list(experiments())
    names: list[str] = []
    for word in words:
        found = [name for name in known if name == word or name.split(":")[0] == word]
        names += found or [find(word).name]
    return list(dict.fromkeys(names))
