"""PyTorch optimisers with a known implied norm: ℓp mirror descent and steepest descent."""

from attnmargin.optim.groups import parameter_groups
from attnmargin.optim.mirror_descent import MirrorDescent
from attnmargin.optim.polar import newton_schulz
from attnmargin.optim.probe import suggest_lr
from attnmargin.optim.steepest_descent import SteepestDescent

__all__ = ["MirrorDescent", "SteepestDescent", "newton_schulz", "parameter_groups", "suggest_lr"]
