"""Text with each token shaded by a number."""

from collections.abc import Sequence
from html import escape

COLOURED_STYLE = """
.coloured { line-height: 2; overflow-wrap: anywhere; }
.coloured span { border-radius: .25rem; padding: .1rem .15rem;
  background: color-mix(in srgb, var(--pick) calc(var(--a) * 100%), transparent); }
.coloured span.minus {
  background: color-mix(in srgb, #3b82c4 calc(var(--a) * 100%), transparent); }
.coloured .marked { outline: 2px solid currentColor; }
"""
_SHADE = 0.75  # opacity of the strongest token


def coloured_text(
    words: Sequence[str], weights: Sequence[float], marked: str | None = None, most: float = 0.0
) -> str:
    """Shade each word by its weight; negative weights get another colour.

    Args:
        weights: one per word; shown when the pointer rests on the word.
        marked: a word that gets an outline.
        most: the weight with the strongest shade; by default the largest of the text.
    """
    scale = most or max((abs(w) for w in weights), default=0.0) or 1.0
    parts = []
    for word, weight in zip(words, weights, strict=True):
        shade = min(abs(weight) / scale, 1.0) * _SHADE
        kinds = ["minus"] * (weight < 0) + ["marked"] * (word == marked)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        joined = word.startswith("##") and len(word) > 2
        shown = escape(word[2:] if joined else word)
        span = f'<span{kind} style="--a:{shade:.2f}" title="{weight:.3g}">{shown}</span>'
        parts.append(span if joined else f" {span}")
    return f'<p class="coloured">{"".join(parts).strip()}</p>'
