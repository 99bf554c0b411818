"""All experiments, by name."""

from functools import cache

from attnmargin.papers.engine.experiment import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """Every figure that can be reproduced, in the order of the papers."""
    from attnmargin.papers import (
        a_directions,
        a_mixtures,
        a_paths,
        a_ranks,
        a_relu,
        a_selections,
        b_attention,
        b_examples,
        b_paths,
        b_table,
        c_descent,
        c_graphs,
        c_lemmas,
        c_local,
        d_layers,
        d_theory,
        d_tokens,
    )

    found = [
        *a_directions.EXPERIMENTS,
        *a_selections.EXPERIMENTS,
        *a_ranks.EXPERIMENTS,
        *a_mixtures.EXPERIMENTS,
        *a_relu.EXPERIMENTS,
        *a_paths.EXPERIMENTS,
        *b_examples.EXPERIMENTS,
        *b_paths.EXPERIMENTS,
        *b_table.EXPERIMENTS,
        *b_attention.EXPERIMENTS,
        *c_descent.EXPERIMENTS,
        *c_graphs.EXPERIMENTS,
        *c_lemmas.EXPERIMENTS,
        *c_local.EXPERIMENTS,
        *d_layers.EXPERIMENTS,
        *d_theory.EXPERIMENTS,
        *d_tokens.EXPERIMENTS,
    ]
    return {experiment.name: experiment for experiment in sorted(found, key=_order)}


def _order(experiment: Experiment) -> tuple[str, int, str]:
    """Paper, then number of the figure, then name."""
    paper, figure = experiment.name.split(":")
    digits = "".join(c for c in figure.split("-")[0] if c.isdigit())
    number = int(digits) if figure.startswith("fig") else 1000
    return paper, number, figure
