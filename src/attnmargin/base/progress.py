"""Callbacks that report the progress of long work, and end it."""

from collections.abc import Callable

# Called with the number done and the total.
Progress = Callable[[int, int], None]
# The same, preceded by the name of the task.
NamedProgress = Callable[[str, int, int], None]
# Called with the number of rows, of those that hold, and the gap so far; true ends the work.
Look = Callable[[int, int, float], bool | None]
