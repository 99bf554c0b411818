"""Experiments point by point: run, save, judge, draw, summarise."""
