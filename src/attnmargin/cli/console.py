"""Progress on standard error, JSON on standard output."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar

from attnmargin.base.progress import NamedProgress, Progress


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show a spinner if standard error is a terminal."""
    with Console(stderr=True).status(words):
        yield


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
