"""
Which word of your own sentences wins
=====================================

There are two sentences, each with one query; embeddings have width 4. The prediction says which
word attention selects, and how sure that is. ``predict_words.py PAGE.html`` also writes a page.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import attnmargin as am
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.prediction import write_prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENTENCES = (["service", "was", "friendly"], ["room", "was", "noisy"])
QUERIES = ("service", "room")
LABELS = [1.0, -1.0]  # a good and a bad review
EMBEDDINGS = {  # the first coordinate says how good a word is
    "service": (0.1, 1.0, 0.0, 0.2),
    "room": (0.0, 0.0, 1.0, 0.3),
    "was": (-0.1, 0.2, 0.1, 1.0),
    "friendly": (0.9, 0.3, -0.2, 0.1),
    "noisy": (-0.8, -0.1, 0.4, 0.2),
}


def main() -> "Figure":
    E = {word: torch.tensor(row, dtype=torch.float64) for word, row in EMBEDDINGS.items()}
    X = torch.stack([torch.stack([E[word] for word in row]) for row in SENTENCES])
    z = torch.stack([E[word] for word in QUERIES])
    data = am.AttentionData(X, z, LABELS, [1.0, 0.0, 0.0, 0.0])

    prediction = am.predict(data)
    for row, t in zip(SENTENCES, prediction.selection.tolist(), strict=True):
        print(f"{' '.join(row)}: {row[t]}")
    print(f"verdict: {prediction.verdict}, margin {float(prediction.margin):.4f}")

    result = am.confirm(prediction)
    agreement = float(result.correlation[-1])
    print(f"training agrees: {bool(result.agrees)}, correlation {agreement:.5f}")
    words = name_tokens(data, [list(row) for row in SENTENCES])
    if len(sys.argv) > 1:
        print(write_prediction(Path(sys.argv[1]), prediction, words, result))
    return am.plot.tokens(prediction, sequence=0, words=words, confirmation=result)


if __name__ == "__main__":
    figure = main()
