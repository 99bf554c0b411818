"""Corpora and word pieces; the classifier of paper B; the tokens that decide (paper D)."""
