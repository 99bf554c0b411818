"""Paper C: token-priority graphs of next-token data, and the rule that attention learns."""

from attnmargin.graphs.automaton import Automaton, Next, Rule
from attnmargin.graphs.collection import TokenGraphs, pseudo_graphs, token_graphs
from attnmargin.graphs.cyclic import (
    CyclicData,
    cyclic_basis,
    cyclic_correction,
    cyclic_data,
    cyclic_part,
)
from attnmargin.graphs.files import read_graphs, read_sequences
from attnmargin.graphs.graph import TokenGraph
from attnmargin.graphs.problem import graph_problem
from attnmargin.graphs.vocabulary import Vocabulary

__all__ = [
    "Automaton",
    "CyclicData",
    "Next",
    "Rule",
    "TokenGraph",
    "TokenGraphs",
    "Vocabulary",
    "cyclic_basis",
    "cyclic_correction",
    "cyclic_data",
    "cyclic_part",
    "graph_problem",
    "pseudo_graphs",
    "read_graphs",
    "read_sequences",
    "token_graphs",
]
