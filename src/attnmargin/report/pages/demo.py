"""The demo: six short reviews, predicted, trained, and written as a page."""

import shlex
from pathlib import Path
from typing import Any

from attnmargin.base.files import make_folder, own_place
from attnmargin.data.demo_reviews import REVIEWS, review_data
from attnmargin.prediction.confirmation import confirm
from attnmargin.prediction.entry import predict
from attnmargin.prediction.sentences import headline, verdict_sentence
from attnmargin.prediction.words import Words, name_tokens
from attnmargin.report.pages.prediction import write_prediction


def review_words() -> Words:
    """Return the words of the built-in reviews, and a title for each."""
    data = review_data()
    names = [[*r.words, *[""] * (data.T - len(r.words))] for r in REVIEWS]
    good = {1: "+1 (good)", -1: "−1 (bad)"}
    titles = [f"asked about “{r.aspect}”, label {good[r.label]}" for r in REVIEWS]
    return name_tokens(data, names, titles)


def write_demo(path: Path) -> dict[str, Any]:
    """Predict what attention learns from the reviews, train it, and write a page and its data."""
    target = make_folder(path, "out")
    words, prediction = review_words(), predict(review_data())
    result = confirm(prediction)
    data = prediction.data.save(own_place(target, "data.npz"), words.names)
    command = f"attnmargin demo --out {shlex.quote(str(path))}"
    page = write_prediction(
        own_place(target, "index.html"), prediction, words, result, command,
        str(Path(path, "data.npz")), begin={"scene": "sentences"},
    )  # fmt: skip
    files = [
        data,
        prediction.solution.save(own_place(target, "solution.npz")),
    ]
    return {
        "findings": _findings(words, prediction, result),
        "holds": bool(result.agrees) and prediction.solution.status == "optimal",
        "verdict": str(prediction.verdict),
        "page": str(page),
        "files": [str(file) for file in files],
    }


def _findings(words: Words, prediction: Any, result: Any) -> list[str]:
    """Write one line per finding."""
    solution, guards = prediction.solution, prediction.support
    lines = [f"{headline(prediction, words)}.", verdict_sentence(prediction)]
    for i, t in enumerate(prediction.selection.tolist()):
        rivals = [words.names[i][s] for s in guards[i].nonzero().flatten().tolist()]
        lines.append(f"{words.titles[i]}: “{words.names[i][t]}” wins over {', '.join(rivals)}")
    lines.append(
        f"margin {float(prediction.margin):.4f}, certified: {solution.status}, "
        f"gap {float(solution.certificate.gap):.1e}"
    )
    lines.append(
        f"{result.explain()} from step {int(result.settled)} of {result.steps:,} on, "
        f"correlation {float(result.correlation[-1]):.5f}"
    )
    return lines
