"""``python -m attnmargin`` is the command line."""

from attnmargin.cli import main

main()
