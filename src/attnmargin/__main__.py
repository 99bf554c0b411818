"""``python -m attnmargin`` is the command line."""

from attnmargin.cli.start import start

start()
