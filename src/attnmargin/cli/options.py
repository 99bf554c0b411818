"""Shared parts of all commands: files checked before the work, and errors that name options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import click
from click.shell_completion import CompletionItem

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, check_place
from attnmargin.cli.log import check_log, with_log

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
FILES = click.Path()


def words_from(*words: str) -> Completion:
    """Complete words."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in words if word.startswith(begun)]

    return complete


def words_or_files(*words: str) -> Completion:
    """Complete words, and files where none fits."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
        fitting = words_from(*words)(ctx, param, begun)
        return fitting or FILES.shell_complete(ctx, param, begun)

    return complete


def check_drawing() -> None:
    """Raise MissingPackageError, before any work, if pictures cannot be drawn."""
    from attnmargin.base.extras import check_extra

    check_extra("plot", "drawing")


@final
class _Input(click.ParamType[Path]):
    """A file to read, checked before anything heavy is imported."""

    name = "file"

    def __init__(self, folders: bool = False) -> None:
        self.folders = folders

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if not (self.folders and path.is_dir()):
            check_file(path, "FILE" if param is None else _spoken(param))
        return path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return FILES.shell_complete(ctx, param, incomplete)


@final
class _Output(click.ParamType[Path]):
    """A file to write, checked before the work starts."""

    name = "file"

    def __init__(self, grows: bool = False, pictures: bool = False) -> None:
        self.grows, self.pictures = grows, pictures

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        argument = "path" if param is None else _spoken(param)
        check_place(value, argument)
        if self.grows:
            check_log(Path(value), argument)
        if self.pictures:
            check_drawing()
        return Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return FILES.shell_complete(ctx, param, incomplete)


@final
class OneOf(click.ParamType[str]):
    """One of several words."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(self.words)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.words:
            argument = "word" if param is None else _spoken(param)
            raise InputError(argument, repr(value), f"one of {', '.join(self.words)}")
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return words_from(*self.words)(ctx, param, incomplete)


@final
class _Start(click.ParamType[str]):
    """Where a run starts: a word, or a file to read."""

    name = "zero|random|file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in ("zero", "random"):
            check_file(Path(value), "--start", "zero, random, or a file")
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return words_or_files("zero", "random")(ctx, param, incomplete)


START = _Start()
INPUT, INPUT_OR_FOLDER, OUTPUT = _Input(), _Input(folders=True), _Output()
PICTURES, _LOG = _Output(pictures=True), _Output(grows=True)
_FILES = _Input | _Output | _Start | click.Path
FOLDER = click.Path(path_type=Path)
LOSSES = OneOf("logistic", "exponential", "linear", "squared", "log")


# The norms with a name, as margin.norms has them; that module would load torch.
NORMS = "fro, nuc, spectral, max, sum, rows, columns"
a_norm = words_from(*NORMS.split(", "))


def norm_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """Reject unknown norms before the library is loaded."""
    try:
        if value in NORMS.split(", ") or 1.0 < float(value) < float("inf"):
            return value
    except ValueError:
        pass
    raise InputError("--norm", repr(value), f"{NORMS} or a number p > 1")


def _rate(_: click.Context, __: click.Parameter, value: str) -> float | str:
    """Parse a rate that training on the command line accepts."""
    if value in ("auto", "polyak"):
        return value
    try:
        if 0.0 < float(value) < float("inf"):
            return float(value)
    except ValueError:
        pass
    raise InputError("--lr", repr(value), "a positive number, or with --plain auto or polyak")


rate = click.option(
    "--lr", default="0.1", show_default=True, callback=_rate,
    help="length of a step; with --plain a factor, auto or polyak",
)  # fmt: skip
power = click.option(
    "--p", type=float, default=2.0, show_default=True, help="2: gradient descent; else ℓp"
)
log = click.option("--log", type=_LOG, help="append start, progress, warnings and end to this file")
as_json = click.option(
    "--json", "as_json", is_flag=True, help="print one JSON object and nothing else"
)

_READING = (
    click.option("--text", help="column of the texts, by name or number; default: found"),
    click.option("--label", help="column of the labels, by name or number; default: found"),
    click.option("--drop", multiple=True, help="a label whose rows are left out"),
    click.option("--delimiter", help="between the cells of a table: one character, or tab"),
    click.option("--header/--no-header", default=None, help="whether the first row is a header"),
)
encoding = click.option("--encoding", help="of the file, such as latin-1; default: UTF-8, or found")


READING = ("text", "label", "drop", "delimiter", "header", "encoding")


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a file of labelled texts is read."""
    for option in (encoding, *reversed(_READING)):
        command = option(command)
    return command


def places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where points are computed, and which part of them."""
    for option in (
        click.option("--address", help="of a running Ray or Dask cluster"),
        click.option(
            "--shard",
            help="2/8: the second of eight parts  [in a SLURM array: the part of this task]",
        ),
        click.option("--jobs", type=int, help="processes  [all cores]"),
        click.option(
            "--engine",
            type=OneOf("local", "ray", "dask"),
            default="local",
            show_default=True,
            help="processes of this machine, or a cluster",
        ),
    ):
        command = option(command)
    return command


def _spoken(param: click.Parameter) -> str:
    """Return the name of a parameter as users write it: --html, or FILE."""
    is_option = isinstance(param, click.Option)
    return max(param.opts, key=len) if is_option else str(param.name).upper()


@final
class Command(click.Command):
    """A command whose errors name its options, and that never overwrites its input.

    With the option ``log`` it writes a log, of which its function knows nothing. ``resumes`` names
    the option with the folder from which a stopped command resumes.
    """

    def __init__(self, *args: Any, resumes: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.resumes = resumes

    def invoke(self, ctx: click.Context) -> Any:
        self._refuse_same(ctx)
        return with_log(ctx.params.pop("log", None), lambda: self._run(ctx))

    def _run(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise self._translated(error) from error
        except KeyboardInterrupt:
            folder = ctx.params.get(self.resumes) if self.resumes else None
            if folder:
                words = f"stopped; run the same command again to continue from {folder}"
                click.echo(f"attnmargin: {words}", err=True)
            raise

    def _refuse_same(self, ctx: click.Context) -> None:
        """Raise InputError if an output file is also an input, or another output."""
        seen: dict[Path, click.Parameter] = {}
        files = [p for p in self.params if isinstance(p.type, _FILES)]
        for param in sorted(files, key=lambda p: isinstance(p.type, _Output)):
            path = ctx.params.get(str(param.name))
            if not isinstance(path, str | Path):  # not given, or several folders
                continue
            first = seen.setdefault(Path(path).resolve(), param)
            if first is not param and isinstance(param.type, _Output):
                got = f"{path}, which is {_spoken(first)} too"
                raise InputError(_spoken(param), got, "a file of its own")

    def _translated(self, error: InputError) -> InputError:
        """Return the same error, with the option's name in place of the argument's."""
        for param in self.params:
            if isinstance(param.type, _Start) and error.argument == "init":
                return InputError(_spoken(param), error.got, error.needs)
            named = error.argument == param.name or f"--{error.argument}" in param.opts
            if isinstance(param, click.Option) and named:
                return InputError(_spoken(param), error.got, error.needs)
        return error
