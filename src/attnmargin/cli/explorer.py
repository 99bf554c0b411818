"""attnmargin explore."""

from pathlib import Path

import click

from attnmargin.cli.console import print_json
from attnmargin.cli.options import INPUT, OUTPUT, Command, as_json


@click.command(cls=Command)
@click.argument("file", type=INPUT, required=False)
@click.option("--html", type=OUTPUT, required=True, help="the page to write")
@as_json
def explore(file: Path | None, html: Path, as_json: bool) -> int:
    """Write a page to play with: drag tokens, press play, watch attention choose.

    FILE (.npz with X, z, y, v) is what the page begins with; without it, an example.
    """
    from attnmargin.cli.inputs import read_data
    from attnmargin.report.pages.explorer import write_explorer

    data, words = (None, None) if file is None else read_data(file, named=False)
    page = write_explorer(html, data, None if words is None else words.names)
    if as_json:
        print_json({"file": file and str(file), "html": str(page)})
    else:
        click.echo(f"page: {page}")
    return 0


COMMANDS = (explore,)
