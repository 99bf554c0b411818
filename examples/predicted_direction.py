"""
Predict where training ends, then train
=======================================

The prediction comes first: which token each sequence selects, in which direction the weights grow,
and from which step on that is certain. Training then follows.
"""

import attnmargin as am

data = am.random_data(n=5, T=6, d=4, name="predicted direction")
prediction = am.predict(data, lr=0.1)
print(prediction.explain())

# %%
# Four thousand steps of the same run, with softmax and gradients that stay exact when attention
# has long decided.
result = am.confirm(prediction)
print(result.explain())
print(f"correlation with the predicted direction: {float(result.correlation[-1]):.6f}")
figure = am.plot.alignment(result)

# %%
# One of the sequences: the star is the selected token, rings are its support tokens, and the
# dotted curve is the way of W z in training. It turns to the predicted arrow.
tokens = am.plot.tokens(prediction, sequence=0, confirmation=result)

# %%
# The same for the loss, the attention and the length of the weights.
course = am.plot.trajectory(result.run, prediction.solution)
