"""Tokens, queries, labels and heads; random instances; the reviews of the demo."""
