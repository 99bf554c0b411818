"""Training: weights, steps, rates, and the loop that joins them; flows and paths."""

from attnmargin.training.flow import gradient_flow
from attnmargin.training.loop import train
from attnmargin.training.paths import regularization_path
from attnmargin.training.trajectory import Trajectory

__all__ = ["Trajectory", "gradient_flow", "regularization_path", "train"]
