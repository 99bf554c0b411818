"""Shared basics: errors, checks, files, seeds, progress, devices, compiled kernels."""
