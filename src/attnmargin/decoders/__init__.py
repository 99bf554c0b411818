"""Linear decoders that predict the next word: what training ends in (2402.18551)."""

from attnmargin.decoders.contexts import NextWords, next_words, random_next_words
from attnmargin.decoders.descent import DecoderRun, descend, flow, largest_rate
from attnmargin.decoders.finite import FinitePart, finite_part
from attnmargin.decoders.prediction import DecoderPrediction, predict_decoder
from attnmargin.decoders.text import WordCounts, count_words, read_words
from attnmargin.margin.contexts import compatible_problem

__all__ = [
    "DecoderPrediction",
    "DecoderRun",
    "FinitePart",
    "NextWords",
    "WordCounts",
    "compatible_problem",
    "count_words",
    "descend",
    "finite_part",
    "flow",
    "largest_rate",
    "next_words",
    "predict_decoder",
    "random_next_words",
    "read_words",
]
