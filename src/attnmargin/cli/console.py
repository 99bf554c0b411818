"""Progress on standard error, JSON on standard output."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from signal import SIGINT, signal
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from attnmargin.base.progress import Look, NamedProgress, Progress
from attnmargin.cli.log import SECONDS, logged, note
from attnmargin.cli.pace import Pace

_BAR = 20  # characters


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
        self._noted = time.monotonic()

    def look(self, rows: int, support: int, gap: float) -> bool:
        self._looked = True
        words = f"{self._words}: {rows:,} rows, {support:,} hold, gap {gap:.1e}"
        self._status.update(words)
        if time.monotonic() - self._noted >= SECONDS:
            self._noted = time.monotonic()
            note(words)
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
def progress_bar(words: str, unit: str = "steps") -> Iterator[Progress]:
    """Show how far work is, as named_progress_bar does, under one name."""
    with named_progress_bar(unit) as tell:
        yield partial(tell, words)


@contextmanager
def named_progress_bar(unit: str = "points", parts: int = 1) -> Iterator[NamedProgress]:
    """Show share, rate and time left with a name for the current work.

    The bar is on standard error if that is a terminal, and lines go to the log if there is one.

    Args:
        unit: what is counted.
        parts: reports per unit, for work that is reported in parts of a unit.
    """
    console, pace = Console(stderr=True), Pace(unit, parts)
    columns = TextColumn("{task.description}", markup=False), BarColumn(_BAR), _PaceColumn(pace)
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("")

        def tell(words: str, done: int, total: int) -> None:
            pace.report(done, total)
            bar.update(task, description=words, completed=done, total=max(total, 1))

        yield logged(tell, pace)


@final
class _PaceColumn(ProgressColumn):
    """Share, rate, time and time left."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, _: Task) -> Text:
        return Text(self._pace.short())


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(record, allow_nan=False, ensure_ascii=False))
