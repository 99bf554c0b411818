"""Parts of the page of a prediction: the guarantee, plain torch, and random starts."""

import torch

from attnmargin.prediction.plain import PlainRun
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words, listing, selected_words
from attnmargin.report.pages.html import paragraph, section, table
from attnmargin.theory.guarantees.proof import Proof

_MOST_CHOICES = 12


def plain_words(plain: PlainRun) -> str:
    """Say what an independent run in plain torch shows."""
    until = f"for the {int(plain.steps):,} steps in which its gradient is exact"
    if not bool(plain.agrees):
        return f"An independent run in plain torch, {until}, selects other tokens."
    return (
        f"An independent run in plain torch does the same {until}: its weights differ by at most "
        f"{float(plain.apart):.0e} of their length. After that, plain gradients are rounding."
    )


def proof_section(prediction: Prediction) -> str:
    """Show the numbers of the guarantee from this start."""
    ending = prediction.ending
    if ending is None or ending.proof is None or int(ending.since) < 0:
        return ""
    own, norm = ending.proof, float(ending.W.norm())
    text = (
        "The run was followed, step by step, to the point where a theorem applies; from there on "
        "the end is certain, in exact arithmetic, for all steps to come. The statements and their "
        "proofs are in docs/guarantees.md."
    )
    name, reason = _theorem(own, bool(ending.together))
    far = [10.0 * norm, 100.0 * norm]
    rows = [
        ["step", f"{int(ending.since):,}", f"the weights have length {norm:.4g}"],
        ["theorem", name, reason],
        ["longest step", f"{float(own.longest):.4g}", f"for which it is proved; yours: "
         f"{prediction.course.words()}"],
        ["least attention", f"{max(float(own.share), 0.0):.6g}", "of tied tokens together, for ever"
         if bool(ending.together) else "of a selected token, for ever"],
        *([f"correlation at length {n:,.0f}", f"{float(prediction.correlation(n)):.6f}",
           "with W_mm, at least"] for n in far if float(prediction.correlation(n)) > 0),
        *([["divergence", f"{float(own.divergence):.2g}", "of the directions of W and W_mm, at "
            "most, for ever; it tends to zero"]] if bool(own.by_cone) else []),
    ]  # fmt: skip
    return section(
        "Why it is certain", paragraph(text), table(["", "value", "scale"], rows, wide=True)
    )


def _theorem(own: Proof, together: bool) -> tuple[str, str]:
    """Return the letter of the theorem, and what it rests on."""
    if together or bool(own.by_level):
        return "A", "the loss is below that of every other choice"
    if bool(own.by_cone):
        return "C", "the weights are in a cone around W_mm"
    return "B", "the weights are in a funnel around W_mm"


def starts_section(prediction: Prediction, words: Words) -> str:
    """Show what runs from random starts select."""
    if prediction.random_starts is None:
        return ""
    found, rows = prediction.starts, []
    for k in range(min(len(found.count), _MOST_CHOICES)):
        chosen = torch.nn.functional.one_hot(found.selections[k], prediction.data.T).bool()
        low, high = found.interval[k].tolist()
        names = listing(selected_words(words, chosen), most=12)
        proved = f"{int(found.proved[k]):,} of {int(found.count[k]):,}"
        rows.append([names, f"{float(found.share[k]):.3f}", f"{low:.3f} to {high:.3f}", proved])
    text = (
        f"{int(found.count.sum()):,} runs began at random weights, with the same steps; the "
        "interval holds the true share with 95 % probability."
    )
    more = len(found.count) - len(rows)
    tail = paragraph(f"… and {more:,} more.") if more > 0 else ""
    head = ["selected tokens", "share of runs", "interval", "proved"]
    return section("From random starts", paragraph(text), table(head, rows, wide=True), tail)
