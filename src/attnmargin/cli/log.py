"""Logs of long commands: lines that are appended one by one, so that they survive a kill."""

import logging
import platform
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from os import getpid
from pathlib import Path
from typing import Any, TypeVar, final

import click

from attnmargin.base.errors import AttnMarginError, InputError
from attnmargin.base.progress import NamedProgress
from attnmargin.cli.pace import Pace
from attnmargin.version import VERSION

Result = TypeVar("Result")

_PACKAGES = ("torch", "numpy", "scipy", "numba")
# A line of progress at least so often, and for so much of the work.
SECONDS, _SHARE = 30.0, 0.05
_FORMAT, _TIME = "%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"
_LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} [A-Z]+ ")
_LONGEST = 200  # bytes of a file that say whether it is a log

_log = logging.getLogger("attnmargin")


def check_log(path: Path, argument: str) -> None:
    """Raise InputError if a file exists that is not a log: only logs are continued."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_LONGEST)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(argument, f"{path} ({error.strerror})", "a file to write") from error
    if start and not _LINE.match(start):
        raise InputError(argument, f"{path}, which is not a log", "a new file, or a log")


def with_log(path: Path | None, work: Callable[[], Result]) -> Result:
    """Work, and append to a log how it began, went on and ended."""
    if path is None:
        return work()
    with _writing(path):
        start = time.monotonic()
        _log.info("%s", _beginning())
        try:
            result = work()
        except BaseException as error:
            _end(_status(error), start, error)
            raise
        _end(int(result) if isinstance(result, int) else 0, start)
    return result


def note(words: str) -> None:
    """Append a line to the log, if there is one."""
    _log.info("%s", words)


def warn(words: str) -> None:
    """Say a warning on standard error, and in the log if there is one."""
    click.echo(words, err=True)
    if _log.handlers:
        _log.warning("%s", words)


def logged(progress: NamedProgress, pace: Pace) -> NamedProgress:
    """Return a progress that also appends lines to the log at sensible intervals."""
    last, share = -SECONDS, 0.0

    def tell(words: str, done: int, total: int) -> None:
        nonlocal last, share
        progress(words, done, total)
        now, ended = time.monotonic(), done >= total
        share = min(share, pace.share)  # new work
        if ended or now - last >= SECONDS or pace.share - share >= _SHARE:
            last, share = now, pace.share
            _log.info("%s: %s", words, pace.long())

    return tell if is_open() else progress


def is_open() -> bool:
    """Say whether there is a log."""
    return _log.isEnabledFor(logging.INFO) and bool(_log.handlers)


@final
class _Appender(logging.FileHandler):
    """Appends lines; a log that cannot be written is given up with one sentence."""

    def handleError(self, record: logging.LogRecord) -> None:
        _log.removeHandler(self)
        click.echo(f"attnmargin: no more log: {sys.exception()!s:.200}", err=True)


@final
class _Lines(logging.Formatter):
    """Indents what follows a line break, so that every record begins with its time."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\n    ")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Open a log, also for warnings."""
    try:
        handler = _Appender(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError("log", f"{path} ({error.strerror})", "a file to write") from error
    handler.setFormatter(_Lines(_FORMAT, _TIME))
    before, level = warnings.showwarning, _log.level

    def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
        _log.warning("%s: %s", category.__name__, message)
        before(message, category, *where, **more)

    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
        _log.setLevel(level)
        _log.removeHandler(handler)
        with suppress(OSError):  # a full disk, which was said
            handler.close()


def _beginning() -> str:
    """Say what was called, where, and with which versions."""
    found = [f"python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    call, place = shlex.join(sys.argv[1:]), f"process {getpid()} on {platform.node()}"
    return f"attnmargin {VERSION} {call} ({', '.join([*found, place])})"


def _status(error: BaseException) -> int:
    """Return the exit code that an error leads to."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return 130
    if isinstance(error, click.ClickException | click.exceptions.Exit):
        return error.exit_code
    return 2 if isinstance(error, AttnMarginError) else 1


def _end(status: int, start: float, error: BaseException | None = None) -> None:
    seconds = time.monotonic() - start
    if error is not None and status != 130:
        expected = isinstance(error, AttnMarginError | click.ClickException)
        _log.error("%s", error, exc_info=None if expected else error)
    words = "stopped" if status == 130 else "ended"
    _log.info("%s with status %d after %.1f seconds", words, status, seconds)
