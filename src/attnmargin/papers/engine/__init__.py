"""Experiments point by point: run, keep, judge, draw, summarise."""
