"""What became of a case: an answer, one sentence, or a defect."""

import contextlib
import io
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, final

import attnmargin as am
from tests.campaigns.fuzz.readers import MOST_NUMBERS, Reader

ANSWER, SENTENCE, DEFECT = "answer", "sentence", "defect"
# Seconds of work after which a case hangs, seconds in which it waits for something, and bytes that
# it may add to the process.
SECONDS, WAITING, ROOM = 20.0, 120.0, 3 << 30
_LONGEST = 1500
# Of the files that are read, one in so many is given to a command as well.
_SHARE = 25


@final
class HangError(BaseException):
    """A case that takes too long; no reader can catch it by mistake."""


@final
@dataclass(frozen=True)
class Verdict:
    """The kind of outcome; for a defect what it is, the same for cases with the same cause."""

    kind: str
    about: str = ""
    trace: str = ""


def bound_memory(room: int = ROOM) -> None:
    """Let the process grow by so many bytes and no more."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + room, now + room))


def judge(reader: Reader, data: bytes, folder: Path, rng: Random | None = None) -> Verdict:
    """Write a case, read it, and judge what happens; with ``rng``, at times in a command too."""
    path = reader.write(data, folder)
    found: list[Any] = []
    verdict = _judged(lambda: found.append(reader.read(path)))
    if verdict.kind != ANSWER or rng is None or not reader.commands or rng.randrange(_SHARE):
        return verdict
    if reader.size(found[0]) > MOST_NUMBERS:
        return verdict
    return _judged(lambda: run_command(rng.choice(reader.commands), path))


def _judged(act: Callable[[], object]) -> Verdict:
    """Call something that must end with an answer or one sentence, in time and without warnings."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as heard, _alarm():
            warnings.simplefilter("always")
            act()
        kind = ANSWER
    except am.AttnMarginError as error:
        kind, said = SENTENCE, str(error)
        if not said.isprintable() or len(said) > _LONGEST:
            return Verdict(DEFECT, f"no sentence: {_place(error)}", said)
    except HangError as error:
        return Verdict(DEFECT, f"hang: {_place(error)}", traceback.format_exc())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Verdict(DEFECT, f"{type(error).__name__}: {_place(error)}", traceback.format_exc())
    if heard:
        return Verdict(DEFECT, f"warning: {heard[0].category.__name__} {heard[0].message!s:.80}",
                       str(heard[0]))  # fmt: skip
    if (used := time.process_time() - start) > SECONDS:
        return Verdict(DEFECT, "slow", f"{used:.0f} s")
    return Verdict(kind)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise HangError

    clocks = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS),
              (signal.SIGALRM, signal.ITIMER_REAL, WAITING))  # fmt: skip
    before = [signal.signal(number, ring) for number, _, _ in clocks]
    try:
        for _, clock, seconds in clocks:
            signal.setitimer(clock, seconds)
        yield
    finally:
        for (number, clock, _), old in zip(clocks, before, strict=True):
            signal.setitimer(clock, 0.0)
            signal.signal(number, old)


def _place(error: BaseException) -> str:
    """Name the innermost lines of the package that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "attnmargin" in f.filename]
    last = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return " ".join([*own[-1:], last])


def run_command(line: tuple[str, ...], path: Path) -> None:
    """Run a command in this process; raise if it breaks the rules of the command line."""
    from attnmargin.cli import main as cli

    words = [str(path) if word == "FILE" else word for word in line]
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    hook = sys.unraisablehook
    try:
        sys.argv = ["attnmargin", *words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as ended:
        if ended.code not in (0, 1, 2, None):
            raise
        said = [x for x in err.getvalue().splitlines() if not x.startswith("attnmargin: compiling")]
        if len(said) > 1 or (ended.code == 2) != bool(said):
            raise AssertionError(f"{words[0]} said {said}") from None
    finally:
        sys.argv, sys.unraisablehook = argv, hook
