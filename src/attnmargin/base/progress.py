"""How long work tells how far it is."""

from collections.abc import Callable

# Called with the number done, and of all.
Progress = Callable[[int, int], None]
# The same, with words for what is being done first.
NamedProgress = Callable[[str, int, int], None]
