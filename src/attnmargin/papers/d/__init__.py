"""Figures and tables of paper D."""
