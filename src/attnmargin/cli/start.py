"""Where the program begins: it imports nothing before it can be interrupted without a traceback."""

import sys


def start() -> None:
    """Run the command line; Ctrl-C while it is imported ends it too.

    A package that everybody needs may be missing after an installation without dependencies.
    """
    try:
        from attnmargin.cli.main import main

        main()
    except ModuleNotFoundError as error:
        from attnmargin.base.extras import CORE

        if error.name not in CORE:
            raise
        words = f'the package {error.name} is missing: pip install "{error.name}"'
        print(f"attnmargin: {words}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
