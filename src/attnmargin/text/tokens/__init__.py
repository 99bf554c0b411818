"""Decisive tokens of a corpus: cleaning, counts, trained models (paper D)."""
