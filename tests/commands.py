"""The command line in this process, and the files that it reads."""

import sys
from pathlib import Path

import pytest

from attnmargin.cli import main as cli


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of one command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["attnmargin", *map(str, words)])
        patch.setattr(sys, "unraisablehook", sys.unraisablehook)  # which the command line replaces
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    captured = capsys.readouterr()
    return int(str(stopped.value.code or 0)), captured.out, captured.err


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
