"""
Which words decide whether a review is good
===========================================

Words are counted, and a small attention model is trained on 600 made-up reviews. It attends to the
words that decide, as paper D proves it must. Needs the extra ``text``.
"""

from dataclasses import replace

import numpy as np

import attnmargin as am

WORDS = {1: ["superb", "warm", "funny", "clever"], 0: ["dull", "slow", "clumsy", "loud"]}
THINGS = ["film", "plot", "cast", "music", "ending", "camera"]

draw = np.random.default_rng(0)
labels = draw.integers(0, 2, 600)
# A word of the right kind comes second; a tenth of the first ones are of the wrong kind.
kinds = np.where(draw.random(600) < 0.9, labels, 1 - labels)
texts = [
    f"the {draw.choice(THINGS)} was {draw.choice(WORDS[kind])}"
    f" and the {draw.choice(THINGS)} {draw.choice(WORDS[label])}"
    for kind, label in zip(kinds.tolist(), labels.tolist(), strict=True)
]
print(texts[0], "→", "good" if labels[0] else "bad")

# %%
# Counting comes first: how often does a word stand in good and in bad reviews?
corpus = am.text.Corpus(texts, labels, ("bad", "good"))
found = am.text.token_importance(corpus, am.text.Cleaning(least=1))
for name in ("positive", "negative"):
    print(name, [found.pieces.vocabulary[s] for s in found.ranked(name, 4)])

# %%
# Then the model is trained. On the left, words with much attention stand high; on the right, the
# head tells good words from bad ones. Both follow from the counts.
trained = am.text.train_tokens(found.pieces, am.text.TokenRecipe(lr=1e-2, epochs=20))
found = replace(found, run=trained)
agreement = found.agreement(least=20)
print(f"signs agree on {agreement['sign agreement']:.0%} of {agreement['tokens']} deciding words")
figure = am.plot.scatter(found)
