"""Progress on standard error, JSON on standard output."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGINT, signal
from typing import Any, final

from rich.console import Console
from rich.progress import Progress as Bar
from rich.status import Status

from attnmargin.base.progress import Look, NamedProgress, Progress


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show a spinner if standard error is a terminal."""
    with Console(stderr=True).status(words):
        yield


@final
class _Onlooker:
    """Shows how far a search is, and ends it at the first Ctrl-C if its result is kept."""

    def __init__(self, words: str, status: Status, keep: bool) -> None:
        self._words, self._status, self._keep = words, status, keep
        self._looked = self._stop = False

    def look(self, rows: int, support: int, gap: float) -> bool:
        self._looked = True
        self._status.update(f"{self._words}: {rows:,} rows, {support:,} hold, gap {gap:.1e}")
        return self._stop

    def interrupt(self, *_: object) -> None:
        if self._stop or not (self._keep and self._looked):
            raise KeyboardInterrupt
        self._stop = True


@contextmanager
def searching(words: str, keep: bool) -> Iterator[Look]:
    """Show rows, support and gap of a search if standard error is a terminal.

    With ``keep``, the first Ctrl-C ends a search that reports, and its best result is returned.
    """
    with Console(stderr=True).status(words) as status:
        onlooker = _Onlooker(words, status, keep)
        before = signal(SIGINT, onlooker.interrupt)
        try:
            yield onlooker.look
        finally:
            signal(SIGINT, before)


@contextmanager
def progress_bar(words: str) -> Iterator[Progress]:
    """Show a progress bar if standard error is a terminal."""
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(words)
        yield lambda k, steps: bar.update(task, completed=k, total=max(steps, 1))


@contextmanager
def named_progress_bar() -> Iterator[NamedProgress]:
    """Show a progress bar with a label for the current work if standard error is a terminal."""
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("")
        yield lambda words, done, total: bar.update(
            task, description=words, completed=done, total=max(total, 1)
        )


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(record, allow_nan=False, ensure_ascii=False))
