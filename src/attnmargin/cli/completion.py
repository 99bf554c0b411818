"""attnmargin completion."""

import click
from click.shell_completion import get_completion_class

from attnmargin.cli.options import Command, OneOf

_PROGRAM, _VARIABLE = "attnmargin", "_ATTNMARGIN_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=OneOf("bash", "zsh", "fish"))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and files in SHELL.

    \b
    bash: eval "$(attnmargin completion bash)"     in ~/.bashrc
    zsh:  eval "$(attnmargin completion zsh)"      in ~/.zshrc, after compinit
    fish: attnmargin completion fish | source      in ~/.config/fish/config.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None  # click knows the three shells
    click.echo(complete(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())


COMMANDS = (completion,)
