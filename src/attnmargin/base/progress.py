"""Callbacks that report the progress of long work."""

from collections.abc import Callable

# Called with the number done and the total.
Progress = Callable[[int, int], None]
# The same, preceded by the name of the task.
NamedProgress = Callable[[str, int, int], None]
