"""Regularisation paths: the least loss on spheres of growing radius."""
