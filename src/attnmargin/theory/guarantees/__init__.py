"""What a point that training has reached proves about all that follows."""

from attnmargin.theory.guarantees.proof import Guarantee, guarantee

__all__ = ["Guarantee", "guarantee"]
