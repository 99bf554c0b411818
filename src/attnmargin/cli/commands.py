"""The command line: parse, one library call, print.

Exit 0: done, and every claim holds. Exit 1: the answer is no (infeasible, inaccurate, a
certificate that does not hold). Exit 2: bad usage or bad input, in one sentence.
"""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from attnmargin.base.errors import AttnMarginError, InputError
from attnmargin.version import VERSION

_FILE = click.Path(path_type=Path)


def _place(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what cannot be written before the work is done."""
    if path is not None:
        from attnmargin.base.files import check_place

        check_place(path, option.opts[0])
    return path


_NEW: dict[str, Any] = {"type": _FILE, "callback": _place}  # a file that the command writes


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(VERSION, prog_name="attnmargin")
def cli() -> None:
    """What attention will learn: which tokens it selects, and by what margin."""


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--parameter", default="W", show_default=True, help="W or KQ")
@click.option(
    "--p", type=float, default=2.0, show_default=True, help="2: gradient descent; else ℓp"
)
@click.option("--loss", default="logistic", show_default=True)
@click.option("--limit", type=int, help="how many selections the search may solve")
@click.option("--verify", "train_too", is_flag=True, help="train, and report the agreement")
@click.option("--steps", type=int, default=4000, show_default=True, help="of --verify")
@click.option("--html", **_NEW, help="write a page about one instance")
@click.option("--out", **_NEW, help="save the solution as .npz, for attnmargin verify")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def predict(
    file: Path,
    train_too: bool,
    steps: int,
    html: Path | None,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Tell what attention will learn from FILE (.npz with X, z, y, v), and why."""
    from attnmargin import report
    from attnmargin.cli.commands import predictions as tables
    from attnmargin.cli.runs import progress_bar
    from attnmargin.cli.solutions import print_json
    from attnmargin.data.attention_data import AttentionData
    from attnmargin.prediction.confirmation import confirm
    from attnmargin.prediction.prediction import predict as tell
    from attnmargin.report.words import name_tokens

    data, words = AttentionData.load(file), None
    if html is not None:
        words = name_tokens(data, tables.read_words(file))
    with progress_bar("searching") as progress:
        prediction = tell(data, progress=progress, **options)
    result = None
    if train_too:
        with progress_bar("training") as progress:
            result = confirm(prediction, steps=steps, progress=progress)
    saved = None if out is None else prediction.solution.save(out)
    command = shlex.join(["attnmargin", *sys.argv[1:]])
    page = html and report.write_prediction(html, prediction, words, result, command, str(file))
    record = tables.prediction_record(prediction, result)
    record |= {"file": str(file), "out": saved and str(saved), "html": page and str(page)}
    if as_json:
        print_json(record)
    else:
        tables.print_prediction(record)
    return 0 if record["holds"] else 1


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--norm", default="fro", show_default=True, help="fro, nuc, or a number p > 1")
@click.option(
    "--select",
    default="opt",
    show_default=True,
    help="opt: the tokens of largest score; or a .npy, .npz or .json file with the selection",
)
@click.option("--rank", type=int, help="nuclear norm: the width of K and Q, W = K Qᵀ")
@click.option("--out", **_NEW, help="save the solution as .npz, for attnmargin verify")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def solve(
    file: Path, norm: str, select: str, rank: int | None, out: Path | None, as_json: bool
) -> int:
    """Solve the attention SVM of FILE (.npz with X, z, y, v; or a saved problem)."""
    from attnmargin.cli.commands import solutions as tables
    from attnmargin.solvers import solve as solve_problem

    problem = tables.read_problem(file, select)
    with tables.waiting("solving (the first time on a machine, the solver is compiled)"):
        solution = solve_problem(problem, norm, rank=rank)
    saved = None if out is None else solution.save(out)
    record = tables.solution_record(solution) | {"file": str(file), "out": saved and str(saved)}
    if as_json:
        tables.print_json(record)
    else:
        tables.print_solution(solution, record)
    return 0 if record["settled"] == record["problems"] else 1


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def verify(file: Path, as_json: bool) -> int:
    """Check the certificate of a saved solution with nothing but the FILE."""
    from attnmargin.cli.commands import solutions as tables

    record = tables.verification_record(file)
    if as_json:
        tables.print_json(record)
    else:
        tables.print_verification(record)
    return 0 if record["holds"] else 1


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--parameter", default="W", show_default=True, help="W, KQ or vW")
@click.option(
    "--p", type=float, default=2.0, show_default=True, help="2: gradient descent; else ℓp"
)
@click.option("--lr", type=float, default=0.1, show_default=True)
@click.option("--steps", type=int, default=2000, show_default=True)
@click.option("--plain", is_flag=True, help="do not normalise gradients")
@click.option("--loss", default="logistic", show_default=True)
@click.option("--penalty", type=float, default=0.0, show_default=True, help="λ of the ridge term")
@click.option("--width", type=int, help="m of K and Q")
@click.option("--record", type=int, default=100, show_default=True, help="steps between records")
@click.option("--out", **_NEW, help="save the trajectory as .npz")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def train(
    file: Path, p: float, plain: bool, out: Path | None, as_json: bool, **options: Any
) -> int:
    """Train attention on FILE (.npz with X, z, y, v), and compare it with the SVM."""
    from attnmargin.cli.commands import runs as tables
    from attnmargin.cli.solutions import print_json
    from attnmargin.data.attention_data import AttentionData
    from attnmargin.training import train as run_training

    data, method = AttentionData.load(file), "gd" if p == 2.0 else "mirror"
    with tables.progress_bar("training") as progress:
        run = run_training(
            data, p=p, method=method, normalize=not plain, progress=progress, **options
        )
    saved = None if out is None else run.save(out)
    norm = "nuc" if options["parameter"] == "KQ" else "fro" if p == 2.0 else p
    record = tables.training_record(data, run, norm)
    record |= {"file": str(file), "out": saved and str(saved)}
    if as_json:
        print_json(record)
    else:
        tables.print_training(record)
    return 0


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--next", "prompt", help="tokens, separated by blanks or as JSON: what comes next?")
@click.option("--last", help="print the whole graph of this last token, layer by layer")
@click.option(
    "--unrealisable",
    type=click.Choice(["drop", "keep"]),
    default="drop",
    show_default=True,
    help="sequences whose next token is not among their tokens; --next needs them dropped",
)
@click.option("--html", **_NEW, help="write a page with the graphs")
@click.option("--graphml", **_NEW, help="write the graphs for other programs")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def graph(
    file: Path,
    prompt: str | None,
    last: str | None,
    unrealisable: str,
    html: Path | None,
    graphml: Path | None,
    as_json: bool,
) -> int:
    """Tell which tokens dominate which in FILE (.jsonl with tokens and next, or text)."""
    from attnmargin.cli.commands import graphs as tables
    from attnmargin.cli.solutions import print_json, waiting
    from attnmargin.graphs import read_graphs
    from attnmargin.report.pages.graphs import write_graphs

    if html is not None and html == graphml:
        raise InputError("--html and --graphml", str(html), "two different files")
    with waiting("reading, and building graphs"):
        graphs = read_graphs(file, unrealisable=unrealisable)
    record = tables.graphs_record(graphs, details=as_json) | {"file": str(file)}
    if last is not None:
        record["last"] = tables.graph_record(graphs[last])
    if prompt is not None:
        words = tables.read_prompt(prompt)
        record["next"] = tables.next_record(graphs.next(words)) | {"prompt": words}
    if html is not None:
        record["html"] = str(write_graphs(html, graphs, record))
    if graphml is not None:
        record["graphml"] = str(graphs.to_graphml(graphml))
    if as_json:
        print_json(record)
    else:
        tables.print_record(graphs, record)
    return 0 if prompt is None or record["next"]["decided"] else 1


@cli.command("train-text")
@click.argument("file", type=_FILE)
@click.option("--text", default="text", show_default=True, help="column of the texts")
@click.option("--label", default="label", show_default=True, help="column of the labels")
@click.option("--vocab", type=_FILE, help="WordPiece vocabulary; words of the texts without it")
@click.option("--p", type=float, default=1.1, show_default=True, help="of the mirror potential")
@click.option("--lr", type=float, default=8e-4, show_default=True, help="for the summed loss")
@click.option("--layers", type=int, default=3, show_default=True)
@click.option("--heads", type=int, default=3, show_default=True)
@click.option("--width", type=int, default=384, show_default=True)
@click.option("--hidden", type=int, default=1536, show_default=True)
@click.option("--length", type=int, default=512, show_default=True, help="tokens of a text")
@click.option("--dropout", type=float, default=0.2, show_default=True)
@click.option("--epochs", type=int, default=40, show_default=True, help="at most")
@click.option("--batch", type=int, default=100, show_default=True)
@click.option("--stop", type=float, default=0.995, show_default=True, help="training accuracy")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--test-share", "share", type=float, default=0.2, show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--out", type=_FILE, help="folder for checkpoints; a stopped run goes on from there")
@click.option("--html", **_NEW, help="write a page: accuracy, weights, attention")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def train_text(
    file: Path,
    text: str,
    label: str,
    vocab: Path | None,
    share: float,
    device: str,
    out: Path | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Train a transformer on FILE (two classes of texts) by ℓp mirror descent."""
    from attnmargin.cli.commands import classifier as tables
    from attnmargin.cli.runs import progress_bar
    from attnmargin.cli.solutions import print_json
    from attnmargin.text.classifier.training import Recipe

    names = ("layers", "heads", "width", "hidden", "length", "dropout")
    shape = {name: options.pop(name) for name in names}
    recipe = Recipe(**options)
    with progress_bar("training") as progress:
        record = tables.train_file(
            file, columns=(text, label), vocabulary=vocab, shape=shape, recipe=recipe, share=share,
            out=out, device=device, progress=progress, html=html,
        )  # fmt: skip
    if as_json:
        print_json(record)
    else:
        tables.print_run(record)
    return 0


@cli.command()
@click.argument("file", type=_FILE)
@click.option("--text", default="text", show_default=True, help="column of the texts")
@click.option("--label", default="label", show_default=True, help="column of the labels")
@click.option("--drop", multiple=True, help="a label whose rows are left out")
@click.option("--balance", is_flag=True, help="leave out texts of the larger class at random")
@click.option("--vocab", type=_FILE, help="WordPiece vocabulary; whole words without it")
@click.option("--keep-markup", is_flag=True, help="do not remove tags such as <br />")
@click.option("--keep-stop-words", is_flag=True, help="do not remove words such as the")
@click.option("--no-stem", is_flag=True, help="keep words as they are")
@click.option("--least", type=int, default=50, show_default=True, help="drop rarer tokens")
@click.option("--top", type=int, default=15, show_default=True, help="tokens of each table")
@click.option("--frequent", type=int, help="compare on tokens seen so often; 200, fewer if small")
@click.option("--statistics-only", is_flag=True, help="count, and train nothing")
@click.option("--layers", type=int, default=1, show_default=True, help="model (1) or (36)")
@click.option("--width", type=int, default=64, show_default=True, help="of the embeddings")
@click.option("--lr", type=float, default=1e-3, show_default=True)
@click.option("--epochs", type=int, default=60, show_default=True)
@click.option("--batch", type=int, default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--out", type=_FILE, help="folder for the model; a stopped run goes on from there")
@click.option("--html", **_NEW, help="write a page: tables, pictures, coloured texts")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def tokens(file: Path, html: Path | None, as_json: bool, **options: Any) -> int:
    """Tell which tokens of FILE (two classes of texts) decide, and whether training agrees."""
    from attnmargin.cli.commands import tokens as tables
    from attnmargin.cli.solutions import print_json

    found, record = tables.analyse(file, **options)
    if html is not None:
        from attnmargin.report.pages.tokens import write_tokens

        record["html"] = str(write_tokens(html, found, record))
    if as_json:
        print_json(record)
    else:
        tables.print_importance(record)
        if html is not None:
            click.echo(f"page: {html}")
    return 0


@cli.command()
@click.argument("figures", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="list the figures, and compute nothing")
@click.option("--trials", type=int, help="per point; that of the paper by default")
@click.option(
    "--out", type=_FILE, default=Path("results"), show_default=True, help="folder for results"
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--data", type=_FILE, help="folder of reviews, for the figures that need them")
@click.option("--redraw", is_flag=True, help="draw and judge what is saved, compute nothing")
@click.option("--point", "points", multiple=True, help="compute and save this point only; repeat")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def reproduce(
    figures: tuple[str, ...], listing: bool, as_json: bool, points: tuple[str, ...], **options: Any
) -> int:
    """Run FIGURES of the papers (A:fig7, or A for all), and say which claims hold."""
    from attnmargin.cli.commands import figures as tables

    if points and not listing:
        return tables.run_points(list(figures), points, as_json, **options)
    if listing or not figures:
        tables.print_list(as_json)
        return 0
    return tables.run_figures(list(figures), as_json, **options)


@cli.command()
@click.option(
    "--out", type=_FILE, default=Path("demo"), show_default=True, help="folder for the page"
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
def demo(out: Path, as_json: bool) -> int:
    """Predict what attention learns from built-in reviews, train it, and write a page."""
    from attnmargin.cli.commands import solutions as tables
    from attnmargin.report import write_demo

    with tables.waiting("predicting, training and drawing"):
        record = write_demo(out)
    if as_json:
        tables.print_json(record)
    else:
        for line in record["findings"]:
            click.echo(line)
        click.echo(f"page: {record['page']}")
    return 0 if record["holds"] else 1


def main() -> None:
    """Run a command; every error is one sentence on standard error."""
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
