"""The page of a prediction: what is selected, by what margin, why, alternatives, and the proof."""

import shlex
from html import escape
from pathlib import Path
from typing import Any

import torch

from attnmargin.attention.losses import as_loss
from attnmargin.attention.score import scores
from attnmargin.margin.certificate import Status
from attnmargin.margin.norms import Frobenius
from attnmargin.plot.drawing import draw_panel
from attnmargin.plot.prediction import (
    CURVE_SIZE,
    alignment_panel,
    attention_panel,
    predicted_share,
)
from attnmargin.plot.svg import Markup, embedded
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.sentences import headline, norm_words, optimiser, reach, verdict_sentence
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, listing, name_tokens, selected_words
from attnmargin.report.numbers import plain_number
from attnmargin.report.pages.explorer import prediction_explorer
from attnmargin.report.pages.first import first_picture, plane_section
from attnmargin.report.pages.html import (
    cell,
    figure,
    folded,
    page,
    paragraph,
    section,
    table,
    terms,
    write_page,
)
from attnmargin.report.pages.proof import plain_words, proof_section, starts_section
from attnmargin.report.predictions import outcome_words
from attnmargin.theory import Check, Outcome
from attnmargin.version import VERSION

_MOST_CHOICES = 12

_TERMS = (
    "A sequence is a list of tokens, each a short vector of numbers. Attention looks at a sequence "
    "with a query, a vector as well, and returns a weighted mean of the tokens. The weights, which "
    "add up to 1, are the attention; they come from a table of numbers called W, and W is what "
    "training finds: the larger the number xᵀ W z of a token x and the query z, its logit, the "
    "more attention it gets. A fixed vector, the head, turns the mean into one number, which "
    "should have the sign of the label of the sequence, +1 or −1. The loss measures how far it is "
    "from that; training changes W in small steps that lower the loss (gradient descent)."
)
_OUTCOMES = (
    "Holds means that the statement, or every condition of the theorem, is true for these data. "
    "Fails means that it is not; nothing follows then. Not decidable here means that the data do "
    "not settle it, or that the statement is about another kind of data."
)
_GLOSSARY = (
    "Words of the papers: a stationary point, or point of rest, is a W at which training would "
    "stop. A support token lies exactly one margin below the selected one. (Att-SVM) is the "
    "problem that W_mm solves. n is the number of sequences, T that of tokens in each, d their "
    "width; y is a label, v the head, z a query, L the loss and ∇L its slope in W. A "
    "regularisation path is the best W of a given size, as the size grows. K and Q are two "
    "factors of W that can be trained in its place. Mirror descent is a form of gradient "
    "descent that measures length by ℓp, the p-th root of a sum of p-th powers. A cone is a set "
    "of directions near a given one, its radius says how near. The label margin is that of the "
    "best head for the selected tokens."
)
_PAPERS = (
    ("A", "D. A. Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak: Transformers as Support Vector "
     "Machines, arXiv:2308.16898"),
    ("B", "A. A. K. Julistiono, D. A. Tarzanagh, N. Azizan: Optimizing Attention with Mirror "
     "Descent: Generalized Max-Margin Token Selection"),
    ("C", "Y. Li, Y. Huang, M. E. Ildiz, A. S. Rawat, S. Oymak: Mechanics of Next Token "
     "Prediction with Self-Attention"),
    ("D", "D. Wu and others: Attention with Trained Embeddings Provably Selects Important Tokens"),
)  # fmt: skip


def prediction_page(
    prediction: Prediction,
    words: Words | None = None,
    result: Confirmation | None = None,
    command: str = "attnmargin predict data.npz --verify --html page.html",
    file: str = "data.npz",
    begin: dict[str, Any] | None = None,
) -> str:
    """Build a self-contained page about one instance; ``begin`` as in prediction_explorer."""
    words = words or name_tokens(prediction.data)
    title = headline(prediction, words)
    kind = str(prediction.verdict).split(" ")[0]
    verdict = escape(verdict_sentence(prediction))
    optimal = prediction.solution.status == Status.OPTIMAL
    parts = [
        f'<p class="verdict {kind}">{verdict}</p>',
        _first(prediction, words, result, begin),
        "" if result is None else _training(prediction, words, result),
        plane_section(prediction, words, result),
        _margin(prediction) if optimal else "",
        proof_section(prediction) if optimal else "",
        starts_section(prediction, words),
        _choices(prediction, words),
        _theorems(prediction),
        _certificate(prediction),
        _again(prediction, command, file),
        terms(_TERMS, _GLOSSARY),
    ]
    return page(title, "".join(parts))


def write_prediction(
    path: Path,
    prediction: Prediction,
    words: Words | None = None,
    result: Confirmation | None = None,
    command: str = "attnmargin predict data.npz --verify --html page.html",
    file: str = "data.npz",
    begin: dict[str, Any] | None = None,
) -> Path:
    """Write the page of a prediction; ``command`` reproduces it from ``file``."""
    return write_page(path, prediction_page(prediction, words, result, command, file, begin))


def _first(
    prediction: Prediction, words: Words, result: Confirmation | None, begin: dict[str, Any] | None
) -> str:
    """Begin with the explorer; its picture stands still in print and where no script runs."""
    still = first_picture(prediction, words, result)
    moving = prediction_explorer(prediction, words, begin)
    return f'{moving}<div class="still">{still}</div>' if moving else still


def _margin(prediction: Prediction) -> str:
    solution = prediction.solution
    margin, value = float(prediction.margin), float(solution.value)
    sure = prediction.verdict != Verdict.UNDECIDED
    text = (
        f"{'In training' if sure else 'If training'} ({optimiser(prediction).rstrip(',')}) "
        f"{'' if sure else 'ends with these tokens, '}the weights grow without bound, and their "
        "direction turns to one table of numbers, W_mm: the shortest one that lifts every selected "
        "token at least one unit above all others of its sequence. The shorter it is, the easier "
        "the selection: the margin is 1 / length."
    )
    rows = [
        ["margin", f"{margin:.6g}", f"logit per unit of length; {reach(prediction)}"],
        ["length of W_mm", f"{value:.6g}", norm_words(prediction)],
        [
            "rank of W_mm",
            f"{int(solution.rank)}",
            f"independent directions, of {prediction.data.d}",
        ],
        ["support tokens", f"{int(prediction.support.sum())}", "nearest rivals, in all sequences"],
    ]
    if prediction.finite is not None:
        meaning = "the finite part W_fin, which sets the shares of the mixed tokens"
        rows.append(["length of W_fin", f"{float(prediction.finite.value):.6g}", meaning])
    return section(
        "By what margin", paragraph(text), table(["", "value", "scale"], rows, wide=True)
    )


def _training(prediction: Prediction, words: Words, result: Confirmation) -> str:
    agreed = bool(result.agrees)
    if agreed:
        text = f"Training selected the predicted tokens, from step {int(result.settled)} on."
    elif not bool(result.decided):
        text = f"In short: {result.explain()}."
    else:
        chosen = result.selection
        if chosen.dtype != torch.bool:
            chosen = torch.nn.functional.one_hot(chosen, prediction.data.T).bool()
        text = f"Training selected {listing(selected_words(words, chosen))} instead."
        text += f" In short: {result.explain()}."
    if result.plain is not None:
        text += f" {plain_words(result.plain)}"
    share = float(predicted_share(prediction, result.run.W[-1]).mean())
    rows = [
        ["steps", f"{result.steps:,}", result.course.pace()],
        ["attention of the predicted tokens", f"{share:.6f}", "mean over sequences; 1 is all"],
    ]  # fmt: skip
    curves = [
        (
            attention_panel(result),
            "The attention that the predicted tokens get: at 1 they are selected.",
        )
    ]
    if prediction.solution.status == Status.OPTIMAL:
        scale = "1 is the same direction, 0 a right angle"
        rows.append(["correlation with W_mm", f"{float(result.correlation[-1]):.6f}", scale])
        words_of = "How far the weights are from W_mm, step by step; 0 is the same direction."
        curves.insert(0, (alignment_panel(result), words_of))
    drawn = "".join(
        figure(embedded(draw_panel(panel, CURVE_SIZE), caption), caption)
        for panel, caption in curves
    )
    elsewhere = "Training went elsewhere" if bool(result.decided) else "Training rests"
    return section(
        "Training confirms it" if agreed else elsewhere,
        paragraph(text),
        table(["", "value", "scale"], rows, wide=True),
        f'<div class="pictures">{drawn}</div>',
    )


def _choices(prediction: Prediction, words: Words) -> str:
    search = prediction.search
    if search is None:
        return ""
    text = (
        "A choice of one token per sequence is stable (locally optimal) if every chosen token has "
        "a better score than its support tokens: then training of W that begins far out in its "
        "direction stays with it."
    )
    loss = as_loss(prediction.loss)
    gamma = scores(prediction.data)
    rows = []
    for selection, margin in zip(search.selections, search.margin.tolist(), strict=True):
        chosen = torch.nn.functional.one_hot(selection, prediction.data.T).bool()
        best = gamma.gather(-1, selection.unsqueeze(-1))
        names = listing(selected_words(words, chosen), most=12)
        rows.append([names, f"{margin:.4g}", f"{float(loss.value(best).mean()):.4g}"])
    shown = rows[:_MOST_CHOICES]
    more = len(rows) - len(shown)
    tail = paragraph(f"… and {more:,} more.") if more > 0 else ""
    found = paragraph(f"{search}.")
    head = ["selected tokens", "margin", "loss in the limit"]
    body = table(head, shown, wide=True) if rows else ""
    return section("Could it end elsewhere?", paragraph(text), found, body, tail)


def _theorems(prediction: Prediction) -> str:
    near = [check for check in prediction.checks if check.paper in "AB"]
    far = [check for check in prediction.checks if check.paper not in "AB"]
    return section(
        "Why: what the papers say",
        paragraph(_OUTCOMES),
        folded(f"Papers A and B: {outcome_words(near)}", _check_table(near)),
        folded(f"Papers C and D, about other kinds of data: {outcome_words(far)}",
               _check_table(far)),
    )  # fmt: skip


_KINDS = {Outcome.HOLDS: "holds", Outcome.FAILS: "fails", Outcome.UNDECIDABLE: "open"}


def _check_table(checks: list[Check]) -> str:
    rows = []
    for check in checks:
        known = {name: float(x) for name, x in check.numbers.items() if bool(torch.isfinite(x))}
        numbers = ", ".join(f"{name} = {plain_number(value)}" for name, value in known.items())
        note = f"<small>{escape(check.note)}</small>" if check.note else ""
        meaning = Markup(f"<td>{escape(check.meaning)}{note}</td>")
        outcome = cell(str(check.outcome), _KINDS[check.outcome])
        rows.append([check.label, meaning, outcome, numbers])
    return table(["statement", "in plain words", "here", "numbers"], rows, wide=True)


def _certificate(prediction: Prediction) -> str:
    proof = prediction.solution.certificate
    if prediction.solution.status != Status.OPTIMAL:
        text = (
            "The contradiction above is a list of demands that add up to 0 ≥ 1. Anybody can check "
            "it by adding them; no solver has to be trusted."
        )
        return section("The proof", paragraph(text))
    text = (
        "No solver has to be trusted: W_mm shows that this length is enough, and a list of weights "
        "on the support tokens, the multipliers, shows that no shorter table of numbers can do it. "
        "The two bounds are computed apart from the solver."
    )
    rows = [
        ["length of W_mm", f"{float(proof.upper):.12g}", "no more than this is needed"],
        ["lower bound", f"{float(proof.lower):.12g}", "no less than this can do"],
        ["relative gap", f"{float(proof.gap):.1e}", "0 is exact; optimal means at most "
         f"{proof.tolerance:.0e}"],
        ["worst violated demand", f"{float(proof.primal):.1e}", "0 is none; a demand is 1"],
    ]  # fmt: skip
    return section(
        "The certificate", paragraph(text), table(["", "value", "scale"], rows, wide=True)
    )


def _again(prediction: Prediction, command: str, file: str) -> str:
    items = "".join(f"<li>Paper {name}: {escape(text)}.</li>" for name, text in _PAPERS)
    name = prediction.norm.name.removesuffix(".0")
    norm = "" if name == Frobenius().name else f" --norm {name}"
    solving = f"attnmargin solve {shlex.quote(file)}{norm} --out solution.npz"
    code = f"{command}\n{solving}\nattnmargin verify solution.npz"
    return section(
        "Run it again, and cite it",
        f"<pre>{escape(code)}</pre>",
        paragraph(f"attnmargin {VERSION}. The theory is that of these papers:"),
        f"<ul>{items}</ul>",
    )
