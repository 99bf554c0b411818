"""Margin problems: norms, rows and their builders, certificates, solutions, proofs in words."""
