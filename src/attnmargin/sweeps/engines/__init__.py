"""Engines: where the points of a sweep are computed."""
