"""Heads of real transformers: which tokens they select, by what margin, and who guards that."""

from attnmargin.models.classifier import classifier_heads
from attnmargin.models.collection import Heads
from attnmargin.models.detail import HeadDetail, examine_head
from attnmargin.models.fit import Choices, Fit, fit_choices
from attnmargin.models.head import Head
from attnmargin.models.loading import load_model
from attnmargin.models.null import random_head
from attnmargin.models.queries import Queries, selections
from attnmargin.models.reading import read_heads
from attnmargin.models.rotary import Rotary
from attnmargin.models.settings import Settings
from attnmargin.models.study import HeadStudy, study_heads
from attnmargin.models.wanted import Wanted, place_pairs, wanted_selection
from attnmargin.models.watch import Watch

__all__ = [
    "Choices",
    "Fit",
    "Head",
    "HeadDetail",
    "HeadStudy",
    "Heads",
    "Queries",
    "Rotary",
    "Settings",
    "Wanted",
    "Watch",
    "classifier_heads",
    "examine_head",
    "fit_choices",
    "load_model",
    "place_pairs",
    "random_head",
    "read_heads",
    "selections",
    "study_heads",
    "wanted_selection",
]
