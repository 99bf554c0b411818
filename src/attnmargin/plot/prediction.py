"""A prediction and its confirmation → plot data."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.softmax import probabilities
from attnmargin.plot.pictures import Curves, TokenPanel
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words


def token_panel(
    prediction: Prediction, words: Words, i: int, result: Confirmation | None
) -> TokenPanel:
    """Sequence i in the plane of its tokens, or in a projection where they are wider than 2.

    The projection shows the direction ``W z`` along the first axis and, along the second, what
    spreads the tokens most across it.
    """
    data = prediction.data
    seen = words.visible[i]
    X, z = data.X[i][seen], data.z[i]
    direction = prediction.direction @ z
    basis = torch.eye(2, dtype=X.dtype) if data.d == 2 else _plane(X, direction)
    flat = data.d == 2
    across = "widest spread across it"
    names = ("first coordinate", "second coordinate") if flat else ("along W_mm z", across)
    path = None if result is None else _compressed(result.run.W @ z @ basis.mT).numpy()
    return TokenPanel(
        title=words.titles[i],
        axes=names,
        names=[name for name, shown in zip(words.names[i], seen.tolist(), strict=True) if shown],
        tokens=(X @ basis.mT).numpy(),
        selected=prediction.chosen[i][seen].numpy(),
        support=prediction.support[i][seen].numpy(),
        direction=(direction @ basis.mT).numpy(),
        path=path,
        square=flat,
    )


def _compressed(path: Tensor) -> Tensor:
    """A path with the logarithm of its lengths, so that its beginning can be seen."""
    size = torch.linalg.vector_norm(path, dim=-1, keepdim=True)
    return path * torch.log1p(size) / size.where(size > 0, 1.0)


def _plane(X: Tensor, direction: Tensor) -> Tensor:
    """Two orthonormal rows: a direction, and the widest spread of tokens across it."""
    size = direction.norm()
    first = direction / size if float(size) > 0 else torch.eye(len(direction), dtype=X.dtype)[0]
    rest = X - X.mean(0)
    rest = rest - (rest @ first).unsqueeze(-1) * first
    second = torch.linalg.svd(rest).Vh[0]
    second = second - (second @ first) * first
    length = second.norm()
    return torch.stack((first, second / length if float(length) > 1e-12 else 0.0 * first))


def alignment(result: Confirmation) -> Curves:
    """Misalignment with the predicted direction during training."""
    steps = result.run.steps.numpy()
    off = np.clip(1.0 - result.correlation.numpy(), 1e-16, None)
    return Curves(
        title="how far the weights are from the prediction",
        axes=("training step", "1 − correlation (0 is the same direction)"),
        logarithmic=(True, True),
        curves=[{"name": "1 − correlation with W_mm", "x": steps[1:], "y": off[1:]}],
    )


def attention_share(prediction: Prediction, result: Confirmation) -> Curves:
    """Share of the attention that the selected tokens have during training."""
    run, chosen = result.run, prediction.chosen
    shares = [probabilities(prediction.data, W).where(chosen, 0.0).sum(-1) for W in run.W]
    share = torch.stack(shares)
    steps = run.steps.numpy()
    return Curves(
        title="attention of the predicted tokens",
        axes=("training step", "share of attention (1 is all)"),
        logarithmic=(True, False),
        curves=[
            {"name": "mean over sequences", "x": steps, "y": share.mean(-1).numpy()},
            {"name": "worst sequence", "x": steps, "y": share.amin(-1).numpy()},
        ],
    )
