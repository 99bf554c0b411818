"""attnmargin doctor."""

from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

from attnmargin.cli.console import print_json, waiting
from attnmargin.cli.options import Command, as_json


@click.command(cls=Command)
@as_json
def doctor(as_json: bool) -> int:
    """Show versions, threads, GPU, compiled kernels and extras, and solve a tiny problem.

    Exit 1: the problem was not solved, so that something is broken.
    """
    with waiting("looking"):
        from attnmargin.report.doctor import doctor_record

        record = doctor_record()
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0 if record["holds"] else 1


COMMANDS = (doctor,)


def _print(record: dict[str, Any]) -> None:
    table = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    for name, words in _rows(record):
        table.add_row(name, words)
    console = Console(highlight=False, markup=False)
    console.print(table)
    extras = Table("extra", "adds", "state", box=None, pad_edge=False)
    for own in record["extras"]:
        lacks = f"lacks {', '.join(own['missing'])}: {own['install']}"
        extras.add_row(own["extra"], own["adds"], lacks if own["missing"] else "installed")
    console.print()
    console.print(extras)
    console.print()
    console.print(_verdict(record["check"]), soft_wrap=True)


def _rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Say each part of the record in one line."""
    versions, gpu, threads = record["versions"], record["gpu"], record["threads"]
    return [
        ("attnmargin", f"{versions['attnmargin']}, in {record['machine']['place']}"),
        ("Python", f"{versions['python']} on {record['machine']['system']}"),
        ("packages", ", ".join(f"{name} {found or 'missing'}"
                               for name, found in versions.items()
                               if name not in ("attnmargin", "python"))),
        ("threads", _threads_words(threads)),
        ("GPU", f"{gpu['name'] or 'none'}; torch is built for "
                f"{'CUDA ' + gpu['cuda'] if gpu['cuda'] else 'the CPU'}; "
                f"{'Triton ' + gpu['triton'] if gpu['triton'] else 'no Triton'}"),
        ("kernels", _kernels_words(record["kernels"])),
    ]  # fmt: skip


def _threads_words(threads: dict[str, Any]) -> str:
    own = [f"{x['name']} {x['version'] or ''}".strip() + f" {x['threads']}"
           for x in threads["libraries"] or ()]  # fmt: skip
    return "; ".join([f"{threads['cores']} cores", f"torch {threads['torch']}", *own])


def _kernels_words(kernels: dict[str, Any]) -> str:
    if kernels["error"]:
        return f"none: numba does not work here ({kernels['error']})"
    if not kernels["kernels"]:
        return 'numba is missing, so that small problems take longer: pip install "numba"'
    ready = [own["kernel"] for own in kernels["kernels"] if own["cached"]]
    words = f"{len(ready)} of {len(kernels['kernels'])} are compiled"
    if ready:
        words += f" ({', '.join(ready)})"
    if kernels["writable"]:
        return f"{words}; kept in {kernels['folder']}"
    return (
        f"{words}; no folder can keep more, so that every run compiles: set NUMBA_CACHE_DIR to a "
        "folder to write to"
    )


def _verdict(check: dict[str, Any]) -> str:
    if check["holds"]:
        return f"A tiny problem is solved, with a certified gap of {check['gap']:.1e}: all is well."
    why = check.get("error", f"status {check['status']}")
    return f"A tiny problem is not solved ({why}): something is broken."
