"""Training of the text classifier: a plain loop with checkpoints, resume and early stop."""

import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder, write_whole
from attnmargin.base.progress import Progress
from attnmargin.base.safetensors import read_tensors, refuse_another, write_tensors
from attnmargin.base.seeds import seed_of
from attnmargin.optim.mirror_descent import MirrorDescent
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from attnmargin.text.pieces import Pieces

# Texts of a batch that is only read.
_READ = 500


@final
@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained: ℓp mirror descent on the summed loss, as in paper B."""

    p: float = 1.1
    lr: float = 8e-4
    batch: int = 100
    epochs: int = 40
    stop: float = 0.995  # accuracy in training at which it ends
    seed: int = 0
    parts: int = 4  # in which a batch is computed, each of texts of similar length
    multiple: int = 64  # lengths are padded to multiples of this
    compiled: bool = False

    def __post_init__(self) -> None:
        check_whole(batch=self.batch, epochs=self.epochs, parts=self.parts, multiple=self.multiple)
        if not isinstance(self.seed, int):
            raise InputError("seed", repr(self.seed), "a whole number")
        if not isinstance(self.stop, int | float) or not self.stop > 0.0:
            raise InputError("stop", f"{self.stop!r}", "an accuracy above 0")


@final
@dataclass(eq=False)
class TextRun:
    """A trained classifier, and what was seen of every epoch."""

    model: TextClassifier
    recipe: Recipe
    history: list[dict[str, float]] = field(default_factory=list)
    data: str = ""  # digests of the texts

    @property
    def best(self) -> float:
        """Test accuracy of the best epoch: what the papers report."""
        return max((row["test"] for row in self.history), default=float("nan"))

    @property
    def last(self) -> float:
        """Test accuracy of the last epoch."""
        return self.history[-1]["test"] if self.history else float("nan")

    def record(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "shape": asdict(self.model.shape),
            "recipe": asdict(self.recipe),
            "best": self.best,
            "last": self.last,
            "epochs": len(self.history),
            "seconds": sum(row["seconds"] for row in self.history),
            "history": self.history,
            "data": self.data,
        }


@final
class Batches:
    """Texts on a device, in batches."""

    def __init__(
        self, pieces: Pieces, padding: int, device: torch.device, multiple: int, most: int
    ) -> None:
        self.lengths, self.padding = pieces.lengths, padding
        self.multiple, self.most = multiple, most  # padded lengths: multiples, but no more than
        self.longest = int(self.lengths.max())
        self.ids = torch.from_numpy(pieces.ids.astype(np.int32)).to(device)
        self.start = torch.from_numpy(pieces.start[:-1]).to(device)
        self.size = torch.from_numpy(self.lengths).to(device)
        self.labels = torch.from_numpy(pieces.labels).to(device)

    def shuffled(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """Places of texts in random batches, those of each by length."""
        order = np.random.default_rng(seed).permutation(len(self.lengths))
        found = [order[i : i + batch] for i in range(0, len(order), batch)]
        return [places[np.argsort(self.lengths[places], kind="stable")] for places in found]

    def ordered(self, batch: int) -> list[NDArray[np.int64]]:
        """All texts, by length."""
        order = np.argsort(self.lengths, kind="stable")
        return [order[i : i + batch] for i in range(0, len(order), batch)]

    def take(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Padded ids ``(B, T)`` and labels ``(B,)``."""
        index = torch.from_numpy(places).to(self.ids.device)
        flat, inside = self.spread(places)
        return self.ids[flat].where(inside, self.padding).long(), self.labels[index]

    def spread(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Where the padded tokens stand among all, and which are no padding, ``(B, T)`` each."""
        longest = int(self.lengths[places].max())
        T = min(-(-longest // self.multiple) * self.multiple, max(self.most, longest))
        index = torch.from_numpy(places).to(self.ids.device)
        offset = torch.arange(T, device=self.ids.device)
        inside = offset < self.size[index, None]
        flat = (self.start[index, None] + offset).clamp_max(len(self.ids) - 1)
        return flat, inside


def train_text(
    train: Pieces,
    test: Pieces,
    shape: Shape | None = None,
    recipe: Recipe | None = None,
    *,
    out: str | Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> TextRun:
    """Train a classifier of texts, and test it after every epoch.

    Every epoch has a seed of its own, so a run that is stopped at any moment and started again with
    the same ``out`` goes on from its last epoch to the same numbers.

    Args:
        train, test: token ids and labels, see :func:`attnmargin.text.word_pieces`.
        shape: sizes; by default those of paper B, size 3.
        recipe: power, rate, batch and the like.
        out: a folder for checkpoints (``model.safetensors``, ``run.json``).
        device: a GPU computes in bfloat16, with weights in float32.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> texts = ["a good film", "so good", "a bad film", "so bad"] * 8
        >>> corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0] * 8), ("neg", "pos"))
        >>> pieces = am.text.word_pieces(corpus, am.text.word_list(texts))
        >>> shape = am.text.Shape(len(pieces.vocabulary), layers=1, heads=2, width=16, hidden=16)
        >>> run = am.text.train_text(pieces, pieces, shape, am.text.Recipe(p=2.0, lr=0.02, batch=8))
        >>> run.best
        1.0
    """
    shape, recipe = shape or Shape(len(train.vocabulary)), recipe or Recipe()
    target = torch.device(device)
    if "[PAD]" not in train.vocabulary:
        raise InputError("train", "a vocabulary without [PAD]", "that of word_pieces")
    padding = train.vocabulary.index("[PAD]")
    with torch.random.fork_rng(devices=[] if target.type == "cpu" else [target]):
        torch.manual_seed(seed_of("text model", base=recipe.seed))
        model = TextClassifier(shape, padding)
        digest = f"{train.digest()} {test.digest()}"
        run = TextRun(model.to(target), recipe, data=digest)
        folder = None if out is None else make_folder(out, "out")
        if folder is not None:
            _resume(run, folder)
        parts = [
            Batches(part, padding, target, recipe.multiple, shape.length) for part in (train, test)
        ]
        _check_lengths(parts, shape)
        optimiser = MirrorDescent(model.parameters(), lr=recipe.lr, p=recipe.p)
        for weights in model.parameters():  # gradients of all parts of a batch are added here
            weights.grad = torch.zeros_like(weights)
        forward: nn.Module = model
        if recipe.compiled:
            # One graph per padded length, launched as a whole where there is a GPU.
            mode = "reduce-overhead" if target.type == "cuda" else "default"
            forward = torch.compile(model, dynamic=False, mode=mode)  # type: ignore[assignment]
        while not _finished(run):
            torch.manual_seed(seed_of("text epoch", len(run.history), base=recipe.seed))
            row = _epoch(forward, optimiser, parts[0], recipe, len(run.history), progress)
            check_loss(row["loss"], recipe.lr)
            row["test"] = accuracy(forward, parts[1])
            run.history.append(row)
            if folder is not None:
                _save(run, folder)
    return run


def check_loss(loss: float, lr: float) -> None:
    """Refuse a rate with which training diverges."""
    if not math.isfinite(loss):
        raise InputError("lr", f"{lr:g}, with which the loss becomes {loss:g}", "a smaller rate")


def _check_lengths(parts: list[Batches], shape: Shape) -> None:
    longest = max(part.longest for part in parts)
    if longest > shape.length:
        got = f"{shape.length} for texts of {longest} tokens"
        raise InputError("length", got, "room for the longest text")


def _finished(run: TextRun) -> bool:
    history = run.history
    done = bool(history) and history[-1]["train"] >= run.recipe.stop
    return done or len(history) >= run.recipe.epochs


def _precision(device: torch.device) -> AbstractContextManager[Any]:
    if device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


def _epoch(
    model: nn.Module,
    optimiser: MirrorDescent,
    data: Batches,
    recipe: Recipe,
    epoch: int,
    progress: Progress | None,
) -> dict[str, float]:
    """One pass over the texts: mean loss, accuracy along the way, seconds."""
    start, device = time.perf_counter(), data.ids.device
    model.train()
    batches = data.shuffled(recipe.batch, seed_of("text order", epoch, base=recipe.seed))
    total, right = torch.zeros((), device=device), torch.zeros((), device=device)
    for k, places in enumerate(batches):
        optimiser.zero_grad(set_to_none=False)
        for part in np.array_split(places, min(recipe.parts, len(places))):
            ids, labels = data.take(part)
            with _precision(device):
                logits = model(ids)
            loss = F.cross_entropy(logits.float(), labels, reduction="sum")
            loss.backward()
            total += loss.detach()
            right += (logits.detach().argmax(-1) == labels).sum()
        optimiser.step()
        if progress is not None:
            progress(epoch * len(batches) + k + 1, recipe.epochs * len(batches))
    n = len(data.lengths)
    return {
        "epoch": float(epoch + 1),
        "loss": float(total) / n,
        "train": float(right) / n,
        "seconds": time.perf_counter() - start,
    }


@torch.no_grad()
def accuracy(model: nn.Module, data: Batches) -> float:
    """Share of texts that are classified rightly."""
    model.eval()
    right = torch.zeros((), device=data.ids.device)
    for places in data.ordered(_READ):
        ids, labels = data.take(places)
        with _precision(ids.device):
            right += (model(ids).argmax(-1) == labels).sum()
    return float(right) / len(data.lengths)


def _save(run: TextRun, folder: Path) -> None:
    """One file that holds all, and a copy of its record to read."""
    record = json.dumps(run.record(), indent=1)
    write_tensors(folder / "model.safetensors", run.model.state_dict(), {"run": record})
    write_whole(folder / "run.json", lambda stream: stream.write(f"{record}\n".encode()))


def _resume(run: TextRun, folder: Path) -> None:
    """Go on from the checkpoint of a folder, if it has one."""
    path = folder / "model.safetensors"
    if not path.is_file():
        return
    tensors, notes = read_tensors(path)
    try:
        record = json.loads(notes["run"])
        _check_same(run, record, path)
        history = record["history"]
        run.model.load_state_dict(tensors)
    except (KeyError, ValueError, RuntimeError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("out", f"{path} ({error!s:.60})", "a checkpoint of such a run") from None
    run.history[:] = history


def _check_same(run: TextRun, record: dict[str, Any], path: Path) -> None:
    """Refuse to go on with another recipe or shape; more epochs are welcome."""
    own = {**asdict(run.model.shape), **asdict(run.recipe), "corpus": run.data}
    other = {**record["shape"], **record["recipe"], "corpus": record.get("data")}
    refuse_another(path.parent, own, other)
