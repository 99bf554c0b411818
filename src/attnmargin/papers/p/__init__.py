"""Predictions of runs: how many are proved, after how many steps, from which starts."""
