"""Small problems in exact arithmetic: slow, but without rounding."""
