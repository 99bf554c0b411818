"""Rational arithmetic on the rows of small problems: slow, but without rounding."""
