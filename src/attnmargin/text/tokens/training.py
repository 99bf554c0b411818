"""Training of the token models on labelled sequences: AdamW with a stepwise rate, and resume."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.base.ragged import owners_of
from attnmargin.base.seeds import seed_of
from attnmargin.text.batches import Batches
from attnmargin.text.epochs import epoch_row, resume, run_epochs
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.models import SHORT, TokenModel, check_model

Look = Callable[["TokenRun"], None]


@final
@dataclass(frozen=True)
class TokenRecipe:
    """Settings for training a token model, as in paper D."""

    layers: int = 1
    d: int = 64
    lr: float = 1e-2
    batch: int = 500
    epochs: int = 250
    drops: tuple[int, ...] = (100, 200)  # epochs at which the rate drops to a tenth
    decay: float = 1e-2  # weight decay of AdamW
    seed: int = 0
    parts: int = 4  # sub-batches of texts of similar length, computed one after the other
    affine: bool = False  # LayerNorm of two layers with a trained scale and shift
    start: str = SHORT  # with two layers, "short" p and v or those of the "paper"

    def __post_init__(self) -> None:
        check_whole(d=self.d, batch=self.batch, epochs=self.epochs, parts=self.parts)
        if not isinstance(self.drops, tuple):
            raise InputError("drops", repr(self.drops), "a tuple of epochs")
        for drop in self.drops:
            check_whole(drops=drop)
        check_model(self.layers, self.affine, self.start)
        if not isinstance(self.lr, int | float) or not 0.0 < self.lr < float("inf"):
            raise InputError("lr", repr(self.lr), "a positive number")
        if not isinstance(self.decay, int | float) or not 0.0 <= self.decay < float("inf"):
            raise InputError("decay", repr(self.decay), "zero or a positive number")


@final
@dataclass(eq=False, repr=False)
class TokenRun(Summarised):
    """A trained token model, and the history of its epochs."""

    model: TokenModel
    recipe: TokenRecipe
    history: list[dict[str, float]] = field(default_factory=list)
    data: str = ""  # a digest of the sequences

    def summary(self) -> dict[str, str]:
        """Return the epochs, loss and accuracy, by name."""
        last = self.history[-1] if self.history else {}
        return {
            "epochs": str(len(self.history)),
            "loss": f"{last.get('loss', float('nan')):.4g}",
            "accuracy in training": f"{last.get('train', float('nan')):.4g}",
        }

    @property
    def products(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``⟨E_s, p⟩`` and ``⟨E_s, v⟩``, ``(S,)`` each."""
        to_p, to_v = (x.double().cpu().numpy() for x in self.model.products())
        return to_p, to_v

    def record(self) -> dict[str, Any]:
        """Return the run as a JSON-ready record."""
        return {"recipe": asdict(self.recipe), "history": self.history, "data": self.data}


def train_tokens(
    pieces: Pieces,
    recipe: TokenRecipe | None = None,
    *,
    out: str | Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
    look: Look | None = None,
) -> TokenRun:
    """Train the embeddings, ⟨cls⟩ and head of model (1) or (36) on labelled sequences.

    Every epoch has its own seed. With ``out``, a stopped run resumes after its last epoch.

    Args:
        pieces: token ids with labels 0 and 1, each sequence with at least one token; see
            :func:`attnmargin.text.clean_tokens`.
        out: a folder for checkpoints (``model.safetensors``, ``run.json``).
        look: called with the run after every epoch.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> corpus = am.text.Corpus(["good film", "bad film"] * 8, np.array([1, 0] * 8), ("-", "+"))
        >>> pieces, _ = am.text.clean_tokens(corpus, am.text.Cleaning(stem=False, least=1))
        >>> run = am.text.train_tokens(pieces, am.text.TokenRecipe(d=8, epochs=40))
        >>> to_p, to_v = run.products
        >>> pieces.vocabulary, bool(to_v[0] > 0 > to_v[2])
        (['good', 'film', 'bad'], True)
    """
    own, target = recipe or TokenRecipe(), torch.device(device)
    if len(pieces) == 0 or not bool((pieces.lengths > 0).all()):
        raise InputError("pieces", "a sequence without tokens", "at least one token in each")
    if not bool(np.isin(pieces.labels, (0, 1)).all()):
        raise InputError("pieces", "labels other than 0 and 1", "labels 0 and 1")
    S = len(pieces.vocabulary)
    if not bool(((pieces.ids >= 0) & (pieces.ids < S)).all()):
        raise InputError("pieces", "ids outside of the vocabulary", f"ids from 0 to {S - 1}")
    with torch.random.fork_rng(devices=[] if target.type == "cpu" else [target]):
        torch.manual_seed(seed_of("token model", base=own.seed))
        model = TokenModel(S, own.d, own.layers, affine=own.affine, start=own.start)
    run = TokenRun(model.to(target), own, data=pieces.digest())
    optimiser = torch.optim.AdamW(
        run.model.parameters(), lr=own.lr, weight_decay=own.decay, fused=True
    )
    save = resume(run, out, lambda tensors: _load(run, optimiser, tensors))
    data = Bags(pieces, target)

    def after() -> None:
        save(_state(run, optimiser))
        if look is not None:
            look(run)

    run_epochs(
        run,
        own.lr,
        lambda: len(run.history) >= own.epochs,
        lambda k: _epoch(run, optimiser, data, k, progress),
        after,
    )
    return run


@final
class Bags:
    """Distinct tokens of each sequence with their counts, on a device, in batches."""

    def __init__(self, pieces: Pieces, device: torch.device) -> None:
        S, n = len(pieces.vocabulary), len(pieces)
        places = owners_of(pieces.start) * S + pieces.ids
        pairs, counts = np.unique(places, return_counts=True)
        start = np.searchsorted(pairs, np.arange(n + 1) * S)
        distinct = Pieces(pairs % S, start, pieces.labels, pieces.vocabulary)
        self.texts = Batches(distinct, S, device, 8, int(distinct.lengths.max()))
        self.counts = torch.from_numpy(counts).to(device)

    def take(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        """Return padded ids ``(B, T)``, their counts, and labels ``(B,)``, −1 or 1."""
        ids, labels = self.texts.take(places)
        flat, _ = self.texts.spread(places)
        return ids, self.counts[flat], 2.0 * labels - 1.0


def _epoch(
    run: TokenRun, optimiser: torch.optim.AdamW, data: Bags, epoch: int, progress: Progress | None
) -> dict[str, float]:
    start, own = time.perf_counter(), run.recipe
    for group in optimiser.param_groups:
        group["lr"] = own.lr * 0.1 ** sum(epoch >= drop for drop in own.drops)
    batches = data.texts.shuffled(own.batch, seed_of("token order", epoch, base=own.seed))
    sums = torch.zeros(2, dtype=torch.float64, device=data.counts.device)  # read once
    for k, places in enumerate(batches):
        optimiser.zero_grad()
        for part in np.array_split(places, min(own.parts, len(places))):
            ids, counts, y = data.take(part)
            f = run.model(ids, counts)
            loss = F.softplus(-y * f).sum()
            (loss / len(places)).backward()
            sums += torch.stack([loss.detach().double(), (y * f.detach() > 0).sum()])
        optimiser.step()
        if progress is not None:
            progress(epoch * len(batches) + k + 1, own.epochs * len(batches))
    total, right = (sums / len(data.texts.lengths)).tolist()
    return epoch_row(epoch, total, right, start)


def _state(run: TokenRun, optimiser: torch.optim.AdamW) -> dict[str, Tensor]:
    """Collect all tensors of model and optimiser, by name."""
    found = {f"model.{name}": x for name, x in run.model.state_dict().items()}
    for name, x in run.model.named_parameters():
        for key, value in optimiser.state[x].items():
            found[f"{key}.{name}"] = value
    return found


def _load(run: TokenRun, optimiser: torch.optim.AdamW, tensors: dict[str, Tensor]) -> None:
    """Load tensors by name, see :func:`_state`, into model and optimiser."""
    prefix = "model."
    run.model.load_state_dict(
        {k[len(prefix) :]: x for k, x in tensors.items() if k.startswith(prefix)}
    )
    for name, x in run.model.named_parameters():
        keys = ("step", "exp_avg", "exp_avg_sq")
        state = {key: tensors[f"{key}.{name}"].clone().to(x.device) for key in keys}
        optimiser.state[x] = state | {"step": state["step"].reshape(())}
