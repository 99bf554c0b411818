"""Results → one self-contained HTML page."""

import html
import io
from pathlib import Path
from typing import Any

import torch

from attnmargin.builders import token_problem
from attnmargin.certify import Status
from attnmargin.data import AttentionData
from attnmargin.errors import InputError
from attnmargin.files import write_whole
from attnmargin.plot import TokenMap, draw_token_map
from attnmargin.sample import random_data
from attnmargin.selection import optimal_tokens, scores
from attnmargin.solution import Solution
from attnmargin.solvers import solve

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
figure { margin: 1rem 0; }
figure svg { background: white; border-radius: .5rem; height: auto; max-width: 100%; }
figcaption { font-size: .9rem; opacity: .85; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .7rem; text-align: left; }
code { overflow-wrap: anywhere; }
"""


def token_map(data: AttentionData, selection: torch.Tensor, solution: Solution) -> TokenMap:
    """Plot data of one instance with tokens of width 2 and one selected token per sequence."""
    if data.d != 2 or data.batch_shape:
        raise InputError("data", repr(data), "one instance with tokens of width d = 2")
    support = torch.zeros(data.n, data.T, dtype=torch.bool)
    rows = solution.support.nonzero().flatten()
    names = solution.problem.names
    support[names.sequence[rows], names.other[rows]] = True
    return TokenMap(
        tokens=data.X.numpy(),
        selected=selection.numpy(),
        support=support.numpy(),
        direction=(data.z @ solution.W.mT).numpy(),
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table>{line(head, "th")}{body}</table></div>'


def _svg(picture: TokenMap, description: str) -> str:
    stream = io.StringIO()
    draw_token_map(picture).savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    label = html.escape(description, quote=True)
    return text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _page(headline: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(headline)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{html.escape(headline)}</h1>{body}</body></html>\n"
    )


def demo_page(data: AttentionData, selection: torch.Tensor, solution: Solution) -> str:
    """The page of one small instance: picture, tokens, certificate, how to run it again."""
    picture = token_map(data, selection, solution)
    gap = float(solution.certificate.gap)
    headline = (
        f"The shortest attention weights that select the best token of each of {data.n} sequences "
        f"have a margin of {float(solution.margin):.3f}"
    )
    caption = (
        "Each panel is a sequence; each dot is a token with its number. Attention scores grow "
        "along the arrow. The star is the selected token; ringed tokens are the support: they lie "
        "exactly one margin below it and decide the direction."
    )
    gamma = scores(data)
    rows = [
        [
            str(i),
            str(t),
            f"{float(gamma[i, t]):.3f}",
            "selected" if t == selection[i] else "support" if picture["support"][i, t] else "",
        ]
        for i in range(data.n)
        for t in range(data.T)
    ]
    numbers = [
        ["length of W (Frobenius norm)", f"{float(solution.value):.6f}"],
        ["margin, 1 / length", f"{float(solution.margin):.6f}"],
        ["relative duality gap (0 is exact)", f"{gap:.1e}"],
        ["worst row violation", f"{float(solution.certificate.primal):.1e}"],
    ]
    body = (
        f"<figure>{_svg(picture, caption)}<figcaption>{caption}</figcaption></figure>"
        "<h2>Tokens</h2><p>The score of a token is label × head · token: how much selecting it "
        "lowers the loss. The token of largest score is the one to select.</p>"
        + _table(["sequence", "token", "score", "role"], rows)
        + "<h2>Certificate</h2><p>W is the shortest matrix that puts every selected token one unit "
        "above all others. Its length is bracketed by a dual bound that anybody can check.</p>"
        + _table(["number", "value"], numbers)
        + "<h2>Run it again</h2><p><code>attnmargin demo</code>, or on your own data "
        "<code>attnmargin solve data.npz --out solution.npz</code> and "
        "<code>attnmargin verify solution.npz</code>.</p>"
    )
    return _page(headline, body)


def write_demo(folder: Path) -> dict[str, Any]:
    """Solve the built-in instance (paper A, Figure 1: n = d = 2, T = 3) and write its files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", f"{folder} ({error.strerror})", "a folder to write to") from error
    data = random_data(2, 3, 2, name="A:fig1", min_gap=0.3)
    selection = optimal_tokens(data)
    solution = solve(token_problem(data.X, data.z, selection))
    page = demo_page(data, selection, solution)
    path = write_whole(folder / "index.html", lambda stream: stream.write(page.encode()))
    data.save(folder / "data.npz")
    solution.save(folder / "solution.npz")
    findings = [
        f"sequence {i} selects token {int(t)} (score {float(scores(data)[i, t]):.3f})"
        for i, t in enumerate(selection)
    ]
    findings.append(
        f"margin {float(solution.margin):.6f}, {int(solution.support.sum())} support rows"
    )
    findings.append(f"certified: {solution.status}, gap {float(solution.certificate.gap):.1e}")
    return {
        "findings": findings,
        "holds": solution.status == Status.OPTIMAL,
        "page": str(path),
        "files": [str(folder / name) for name in ("data.npz", "solution.npz")],
    }
