"""The command line.

Exit 0: success, and every claim holds. Exit 1: the answer is negative (infeasible, inaccurate, a
claim or certificate that fails). Exit 2: bad usage or bad input, explained in one sentence.

Commands check their arguments before they import anything heavy.
"""

import _thread
import os
import sys
from contextlib import suppress

import click

from attnmargin.base.errors import AttnMarginError
from attnmargin.cli import (
    classifier,
    completion,
    doctor,
    explorer,
    figures,
    graphs,
    heads,
    margins,
    prediction,
    solutions,
    sweeps,
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
    sweeps,
    doctor,
    completion,
):
    for command in family.COMMANDS:
        cli.add_command(command)


def _interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
    """Raise Ctrl-C once more where it met a callback of a library, which cannot pass it on."""
    if lost.exc_type is KeyboardInterrupt:
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(lost)


def _failed_output(error: OSError) -> int:
    """Say what went wrong with standard output or a file that nobody guards; return a status.

    A reader that has seen enough, such as ``head``, ends a program without a word, as click has it.
    """
    with suppress(OSError, ValueError):  # what is still in the buffer would fail at the very end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 1
    click.echo(f"attnmargin: {error.strerror or error}{_place(error)}", err=True)
    return 2


def _place(error: OSError) -> str:
    return " (standard output)" if error.filename is None else f" ({error.filename})"


def main() -> None:
    """Run a command; every error is one sentence on standard error."""
    sys.unraisablehook = _interrupt_again
    try:
        code = cli.main(prog_name="attnmargin", standalone_mode=False)
        sys.stdout.flush()  # a full disk shows here, not in the last moment of the program
    except click.ClickException as error:
        click.echo(f"attnmargin: {error.format_message()}", err=True)
        code = error.exit_code
    except AttnMarginError as error:
        click.echo(f"attnmargin: {error}", err=True)
        code = 2
    except OSError as error:
        code = _failed_output(error)
    except (click.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code)
