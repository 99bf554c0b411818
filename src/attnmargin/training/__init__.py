"""Training: weights, steps, rates and the loop; gradient flows and regularisation paths."""

from attnmargin.training.flow import gradient_flow
from attnmargin.training.loop import train
from attnmargin.training.rates import Guarded
from attnmargin.training.regularization.paths import regularization_path
from attnmargin.training.trajectory import Trajectory

__all__ = ["Guarded", "Trajectory", "gradient_flow", "regularization_path", "train"]
