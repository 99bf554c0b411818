"""``python -m attnmargin`` is the command line."""

from attnmargin.cli.commands import main

main()
