"""Training: weights, steps, rates, and the loop that joins them."""

from attnmargin.training.loop import train
from attnmargin.training.trajectory import Trajectory

__all__ = ["Trajectory", "train"]
