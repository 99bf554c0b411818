"""``python -m attnmargin`` is the command line."""

from attnmargin.cli.main import main

main()
