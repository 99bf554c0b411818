"""The command line.

Exit 0: success, and every claim holds. Exit 1: the answer is negative (infeasible, inaccurate, a
claim or certificate that fails). Exit 2: bad usage or bad input, explained in one sentence.

Commands check their arguments before they import anything heavy.
"""

import _thread
import sys

import click

from attnmargin.base.errors import AttnMarginError
from attnmargin.cli import (
    classifier,
    explorer,
    figures,
    graphs,
    heads,
    margins,
    prediction,
    solutions,
    tokens,
    training,
)
from attnmargin.version import VERSION


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(VERSION, prog_name="attnmargin")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Predict what attention will learn: which tokens it selects, and by what margin."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for family in (
    prediction,
    explorer,
    solutions,
    margins,
    training,
    graphs,
    classifier,
    tokens,
    heads,
    figures,
):
    for command in family.COMMANDS:
        cli.add_command(command)


def _interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
    """Raise Ctrl-C once more where it met a callback of a library, which cannot pass it on."""
    if lost.exc_type is KeyboardInterrupt:
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(lost)


def main() -> None:
    """Run a command; every error is one sentence on standard error."""
    sys.unraisablehook = _interrupt_again
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"attnmargin: {error.format_message()}", err=True)
        code = error.exit_code
    except AttnMarginError as error:
        click.echo(f"attnmargin: {error}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code)
