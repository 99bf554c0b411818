"""Every assumption and theorem of the papers, as a check with numbers."""

from attnmargin.margin.prompt import prompt_data
from attnmargin.theory.check import Check, Outcome
from attnmargin.theory.guarantees import Guarantee, guarantee
from attnmargin.theory.labels import check_joint
from attnmargin.theory.paper_c import check_next_token
from attnmargin.theory.paper_d import check_embeddings
from attnmargin.theory.paper_e import check_decoder
from attnmargin.theory.paper_f import check_prompt
from attnmargin.theory.paper_g import check_decay
from attnmargin.theory.paper_h import check_rates
from attnmargin.theory.paper_i import check_topics
from attnmargin.theory.paper_j import check_chain
from attnmargin.theory.table import check_theory

__all__ = [
    "Check",
    "Guarantee",
    "Outcome",
    "check_chain",
    "check_decay",
    "check_decoder",
    "check_embeddings",
    "check_joint",
    "check_next_token",
    "check_prompt",
    "check_rates",
    "check_theory",
    "check_topics",
    "guarantee",
    "prompt_data",
]
