"""Parameter groups: one norm for weight matrices, another for everything else."""

from typing import Any

from torch import Tensor, nn

from attnmargin.base.checks import check_kind
from attnmargin.margin.norms import Norm, as_norm


def parameter_groups(
    model: nn.Module,
    matrices: str | float | Norm = "spectral",
    rest: str | float | Norm = "max",
    *,
    rest_lr: float | Tensor | None = None,
) -> list[dict[str, Any]]:
    """Group parameters: weight matrices in one norm; vectors and embeddings in another.

    Convolutions count as matrices. Tables of :class:`torch.nn.Embedding` are no matrices of a
    linear map, tied output layers with them: a step touches few rows.

    Args:
        matrices, rest: norms, as in :class:`SteepestDescent`.
        rest_lr: the learning rate of the rest, if not that of the optimiser; steps in different
            norms have different lengths.

    Returns:
        One or two groups for :class:`SteepestDescent`.

    Example:
        >>> import attnmargin as am, torch
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
        >>> groups = am.optim.parameter_groups(model, rest_lr=1e-3)
        >>> [(group["norm"], len(group["params"])) for group in groups]
        [('spectral', 1), ('max', 2)]
        >>> optimiser = am.SteepestDescent(groups, lr=0.02, momentum=0.95)
    """
    check_kind("model", model, nn.Module)
    tables = {
        id(w)
        for module in model.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for w in module.parameters(recurse=False)
    }
    trained = [w for w in model.parameters() if w.requires_grad]
    wide = [w for w in trained if w.ndim >= 2 and id(w) not in tables]
    known = {id(w) for w in wide}
    other: dict[str, Any] = {
        "params": [w for w in trained if id(w) not in known],
        "norm": as_norm(rest).name,
    }
    if rest_lr is not None:
        other["lr"] = rest_lr
    groups = [{"params": wide, "norm": as_norm(matrices).name}, other]
    return [group for group in groups if group["params"]]
