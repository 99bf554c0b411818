"""Figures of paper A."""
