"""Run command lines in one process, by the Python of an environment: torch is imported once.

Reads a JSON list of lists of words, and prints one of ``[exit code, standard error]``.
"""

import io
import json
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

from attnmargin.cli.start import start


def outcome(words: list[str]) -> tuple[int, str]:
    """Run one command line."""
    sys.argv = ["attnmargin", *words]
    told = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(told):
        try:
            start()
            code = 0
        except SystemExit as stopped:
            code = int(str(stopped.code or 0))
        except Exception:
            traceback.print_exc()
            code = 1
    return code, told.getvalue()


if __name__ == "__main__":
    print(json.dumps([outcome(words) for words in json.loads(sys.argv[1])]))
