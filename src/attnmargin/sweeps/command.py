"""Commands as computations: any program that prints numbers."""

import json
import shlex
import subprocess
from collections.abc import Sequence
from string import Formatter
from typing import Any, final

from attnmargin.base.errors import AttnMarginError, InputError

_NEEDS = "a JSON object as the last line on standard output"
# What programs return that answer no: attnmargin does so for a claim that fails.
_ANSWERS = (0, 1)
_LONGEST = 300


@final
class Command:
    """A program that is run once per trial, with settings in place of ``{names}``.

    Its last line on standard output must be a JSON object of numbers and words. Exit status 0 and 1
    are answers; any other, or no such line, is a failure. No shell is involved: settings cannot be
    taken for more than one argument.

    Args:
        words: the command line, as one string or as its parts. ``{trial}`` and ``{seed}`` may
            stand in it beside the names of the grid, and ``{{`` for a brace.

    Example:
        >>> program = Command(["python", "-c", "print('{{\\"square\\":', {d} ** 2, '}}')"])
        >>> program(d=3)["square"]
        9
    """

    def __init__(self, words: str | Sequence[str]) -> None:
        try:
            self.words = shlex.split(words) if isinstance(words, str) else [str(w) for w in words]
            fields = [f for word in self.words for _, f, _, _ in Formatter().parse(word)]
        except ValueError as error:
            raise InputError("command", f"{words!r:.200} ({error})", "a command line") from None
        if not self.words:
            raise InputError("command", repr(words), "a command line")
        self.names = {field for field in fields if field is not None}
        for name in self.names:
            if not name.isidentifier():
                raise InputError("command", f"{{{name}}}", "names in braces, or {{ for a brace")

    def __call__(self, **settings: Any) -> dict[str, Any]:
        """Run the program once, and return what it printed last."""
        words = [word.format(**settings) for word in self.words]
        try:
            done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        except (OSError, ValueError) as error:
            raise InputError("command", f"{words[0]!r:.100} ({error})", "a program") from None
        if done.returncode not in _ANSWERS:
            raise CommandError(words, f"ended with status {done.returncode}", done.stderr)
        return self._read(words, done)

    def _read(self, words: list[str], done: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        try:
            found = json.loads(lines[-1])
        except (IndexError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise CommandError(words, f"did not print {_NEEDS}", done.stderr)
        kept = {name: value for name, value in found.items() if _is_scalar(value)}
        return {**kept, "exit": done.returncode}


@final
class CommandError(AttnMarginError):
    """A program that failed, with the last line of what it said."""

    def __init__(self, words: list[str], what: str, said: bytes) -> None:
        lines = said.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]:.{_LONGEST}}" if lines else ""
        super().__init__(f"{shlex.join(words):.{_LONGEST}} {what}{last}")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float | str | bool)
