"""
For teachers: a page to play with, pictures, and words
======================================================

What does attention learn? This page has what a lesson of 45 minutes needs: a page to play with,
three experiments in code, and sentences instead of symbols.
"""

import attnmargin as am

# %%
# A page to play with
# -------------------
#
# Drag tokens, press play, and watch attention choose. What the page says is there *before*
# training: which token wins, by what margin, and from which step on that is certain.
#
# .. raw:: html
#
#    <p><a href="../play.html">Open the page on its own</a>: it is one file, works offline, and
#    <em>copy link</em> shares a state with the class.</p>
#    <iframe class="play" src="../play.html" title="The explorer" loading="lazy"></iframe>
#
# ``attnmargin explore --html page.html`` writes it; :doc:`/explorer` says what is on it.

# %%
# First experiment: two tokens, one sequence
# ------------------------------------------
#
# A sequence has two tokens, written as points of the plane, and a *query* that asks. The *head*
# gives every token a score: how well would it do alone? Here it reads the first coordinate.
X = [[[1.0, 0.5], [-0.5, 1.0]]]
data = am.AttentionData(X, z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
print("scores:", am.scores(data).tolist())
prediction = am.predict(data)
print(f"token {int(prediction.selection[0])} wins: {prediction.verdict}")
print(prediction.explain())

# %%
# *Ask the class*: where does the arrow point, and why not straight at the star? The arrow grows in
# training; between the solid and the dashed line lies the margin.
result = am.confirm(prediction)
plane = am.plot.tokens(prediction, confirmation=result)

# %%
# And in time: attention decides within a few steps, and the weights then only grow.
attention = am.plot.attention(result)

# %%
# Second experiment: a wish that cannot be fulfilled
# --------------------------------------------------
#
# Two sequences have the same tokens and the same query, and want different tokens. *Ask the
# class* for a proof that no weights can do this. The library has one, in words:
same = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
wish = am.solve(am.token_problem(same, [[1.0, 1.0], [1.0, 1.0]], [0, 1]))
try:
    wish.raise_for_status()
except am.InfeasibleError as error:
    print(error)

# %%
# Third experiment: the start decides
# -----------------------------------
#
# With several sequences, training can end in different places. Each of these starts lies near
# another stable choice of tokens, and stays there. Two hundred random starts show how often each
# one wins.
many = am.random_data(n=3, T=4, d=3, name="teacher", seed=1)
starts = am.predict(many, random_starts=200).starts
assert starts is not None
for selection, share in zip(starts.selections.tolist(), starts.share.tolist(), strict=True):
    print(f"tokens {selection}: {share:.0%} of the starts")

# %%
# Words instead of symbols
# ------------------------
#
# Every theorem of the papers is a check that says whether its assumptions hold for the data at
# hand, with the numbers that decided it. Some of them, for the first experiment:
for name in ("A: Theorem 1", "A: Theorem 3", "A: Theorem 4"):
    print(prediction.check(name))

# %%
# A sentence of reviews reads best. ``attnmargin demo`` writes a page about six of them, with
# attention as the shade of the words:
#
# .. image:: /explorer-sentences.png
#    :alt: Six reviews, their words shaded by attention
#
# For the board
# -------------
#
# The whole theory in one line, for gradient descent on W:
#
# .. math:: W(k) \approx W_{\mathrm{fin}} + R(k)\, W_{\mathrm{mm}}, \qquad R(k) \to \infty,
#
# .. math:: W_{\mathrm{mm}} = \arg\min_W \|W\|_F \quad\text{subject to}\quad
#           (x_{i\alpha_i} - x_{it})^\top W z_i \ge 1 .
#
# The weights grow without end, in the direction of the shortest matrix that puts the selected
# token of every sequence above all others by one.
#
# Where to go on
# --------------
#
# More pictures: the :doc:`gallery </gallery/index>`. All words, one per thing: :doc:`/quickstart`.
