"""Heads of real transformers: which tokens they select, by what margin, and who guards that."""

from attnmargin.models.collection import Heads
from attnmargin.models.head import Head
from attnmargin.models.loading import load_model
from attnmargin.models.reading import read_heads
from attnmargin.models.rotary import Rotary

__all__ = ["Head", "Heads", "Rotary", "load_model", "read_heads"]
