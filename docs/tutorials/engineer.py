"""
For engineers: which token wins, why, and what guards it
========================================================

You have sequences, texts or a model, and a question: on what does attention settle, by what
margin, and why does it not do what you want? This page asks four kinds of data.
"""

from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import attnmargin as am
from attnmargin.prediction.words import name_tokens

# %%
# Your own sequences
# ------------------
#
# Four arrays say everything: tokens, a query per sequence, labels ±1, and a head: the direction
# that your model reads. Here tokens are words with small vectors; the first number says how
# urgent a word is. Take the embeddings of your model instead. Sequences may have different
# lengths.
TICKETS = [
    ["server", "down", "since", "noon"],
    ["invoice", "wrong", "please", "check"],
    ["thanks", "all", "works"],
]
URGENT = [1.0, -1.0, -1.0]  # is the ticket urgent?
draw = torch.Generator().manual_seed(2)
words = sorted({word for row in TICKETS for word in row})
E = {word: 0.4 * torch.randn(6, generator=draw, dtype=torch.float64) for word in words}
for word, urgency in {
    "down": 1.2,
    "server": 0.5,
    "wrong": 0.3,
    "thanks": -1.0,
    "works": -0.8,
}.items():
    E[word][0] = urgency

X = [torch.stack([E[word] for word in row]) for row in TICKETS]
z = torch.stack([E[row[0]] for row in TICKETS])  # the first word asks
data = am.AttentionData(X, z, URGENT, [1.0, 0, 0, 0, 0, 0])
prediction = am.predict(data, lr=0.1)
for row, t in zip(TICKETS, prediction.selection.tolist(), strict=True):
    print(f"{' '.join(row)}  →  {row[t]}")
print(prediction.explain())

# %%
# The *support tokens* guard the selection: they are the closest rivals of the words that win, and
# no other token matters for the margin. Change one of them, and the weights change.
for row, guards in zip(TICKETS, prediction.support.tolist(), strict=True):
    print([word for word, guard in zip(row, guards, strict=False) if guard])

# %%
# The picture shows one ticket in the plane that attention sees: the star wins, rings are its
# guards, and the dashed line is one margin below the star.
result = am.confirm(prediction)
named = name_tokens(data, [row + [""] * (data.T - len(row)) for row in TICKETS])
picture = am.plot.tokens(prediction, sequence=1, words=named, confirmation=result)

# %%
# A selection that is impossible
# ------------------------------
#
# You may ask for words of your own choice. Where no weights can make it, the answer is a proof in
# words. Here two tickets begin with the same word and hold the same two others, and want
# different ones.
twice = [["app", "slow", "crash"], ["app", "slow", "crash"]]
vectors = torch.eye(3, dtype=torch.float64)[:, :3].expand(2, 3, 3)
wanted = am.token_problem(vectors, vectors[:, 0], [1, 2])
try:
    am.solve(wanted).raise_for_status()
except am.InfeasibleError as error:
    print(error)

# %%
# The remedy is in the sentence: give the two another query, or let one of them want something else.
other = vectors[:, 0].clone()
other[1] = torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64)
print(am.solve(am.token_problem(vectors, other, [1, 2])).status)

# %%
# What comes next: logs, clicks, commands
# ---------------------------------------
#
# With next-token data there is no label and no head: attention learns which earlier token to
# copy. You can read that off a graph, without training (:doc:`/graphs`).
sessions = [
    ["login", "search", "cart"],
    ["search", "login", "cart"],
    ["login", "help", "cart"],
    ["search", "help", "cart"],
]
follows = ["search", "search", "help", "search"]
graphs = am.token_graphs(sessions, follows, ["login", "search", "help", "cart"])
answer = am.graphs.Automaton(graphs).next(["login", "search", "help", "cart"])
print(answer)

# %%
# An arrow points from a token that wins to one that loses, given the last token.
graph = am.plot.graph(graphs, "cart")

# %%
# Texts with labels
# -----------------
#
# For a corpus of labelled texts, ask which words decide. On the command line this is
# ``attnmargin tokens reviews.csv --html page.html`` (:doc:`/tokens`).
random = np.random.default_rng(1)
good, bad = ["quick", "kind", "solved"], ["slow", "rude", "ignored"]
labels = random.integers(0, 2, 200)
sides = [good if label else bad for label in labels]
texts = [f"support was {random.choice(side)} and the agent {random.choice(side)}" for side in sides]
corpus = am.text.Corpus(texts, labels, ("complaint", "praise"))
found = am.text.token_importance(corpus, am.text.Cleaning(least=1, stem=False))
for side in ("negative", "positive"):
    print(side, [found.pieces.vocabulary[s] for s in found.ranked(side, 3)])

# %%
# The heads of your model
# -----------------------
#
# :func:`attnmargin.models.read_heads` reads queries, keys and tokens of every head of a
# transformer, and reports the largest difference from the attention that the model itself
# computes. Each head is then compared with the max-margin head of what it selects, beside random
# heads with the same spectrum. This one is a small GPT-2 that was never trained: its heads are
# random, and it shows.
torch.manual_seed(0)
ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0}
config = GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=12, **ends)
model = GPT2LMHeadModel(config)
sentences = torch.randint(60, (12, 10), generator=draw).tolist()
heads = am.models.read_heads(model, sentences)
studies = am.models.study_heads(heads, am.models.Settings(queries=12, draws=3))
print(f"{len(studies)} heads")
heads_picture = am.plot.heads(studies)

# %%
# Trained models are another matter: :doc:`/heads` shows MiniLM, and ``attnmargin heads MODEL
# texts.txt --html page.html`` your own, with ``--want pairs.jsonl`` for the selections that you
# wish for.
#
# Where to go on
# --------------
#
# Files and options of the command line: :doc:`/command-line`. What the verdicts mean:
# :doc:`/quickstart`. Short answers: :doc:`/how-to`.
