"""Where the program begins: it imports nothing before it can be interrupted without a traceback."""

import sys


def start() -> None:
    """Run the command line; Ctrl-C while it is imported ends it too."""
    try:
        from attnmargin.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
