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
from attnmargin.graphs.export import to_graphml, to_networkx
from attnmargin.graphs.files import read_graphs, read_sequences
from attnmargin.graphs.frequent import frequent_graphs
from attnmargin.graphs.graph import TokenGraph
from attnmargin.graphs.markov import ChainEstimate, ContextChain, fit_chain
from attnmargin.graphs.next_token import (
    next_token_data,
    next_token_head,
    random_next_tokens,
)
from attnmargin.graphs.noise import Noise
from attnmargin.graphs.planted import PlantedChoices, planted_choices
from attnmargin.graphs.problem import graph_problem
from attnmargin.graphs.robust import robust_graphs, without_noise
from attnmargin.graphs.scoring import Score, scores, split_graphs
from attnmargin.graphs.topics import Topic, continuation, mixture, random_topics
from attnmargin.graphs.vocabulary import Vocabulary

__all__ = [
    "Automaton",
    "ChainEstimate",
    "ContextChain",
    "CyclicData",
    "Next",
    "Noise",
    "PlantedChoices",
    "Rule",
    "Score",
    "TokenGraph",
    "TokenGraphs",
    "Topic",
    "Vocabulary",
    "continuation",
    "cyclic_basis",
    "cyclic_correction",
    "cyclic_data",
    "cyclic_part",
    "fit_chain",
    "frequent_graphs",
    "graph_problem",
    "mixture",
    "next_token_data",
    "next_token_head",
    "planted_choices",
    "pseudo_graphs",
    "random_next_tokens",
    "random_topics",
    "read_graphs",
    "read_sequences",
    "robust_graphs",
    "scores",
    "split_graphs",
    "to_graphml",
    "to_networkx",
    "token_graphs",
    "without_noise",
]
