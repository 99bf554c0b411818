"""Computations over many points: a grid, one file per point, engines, shards, one table."""

from attnmargin.sweeps.command import Command
from attnmargin.sweeps.engines.engine import Engine
from attnmargin.sweeps.sweep import Sweep

__all__ = ["Command", "Engine", "Sweep"]
