"""Training of the text classifier: a plain loop with checkpoints, resume and early stop."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
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
from attnmargin.base.seeds import seed_of
from attnmargin.base.words import counted
from attnmargin.optim.mirror_descent import MirrorDescent
from attnmargin.text.batches import Batches
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from attnmargin.text.epochs import epoch_row, resume, run_epochs
from attnmargin.text.pieces import Pieces

# Batch size for evaluation, where texts are padded; packed ones have the sizes of training.
_READ = 500
# Packed texts are filled up to multiples of this many tokens.
_FILL = 2048
# Graphs that may be compiled: one per size, for training and for tests.
_GRAPHS = 64

Reader = Callable[[Batches, NDArray[np.int64]], tuple[Tensor, Tensor]]


@final
@dataclass(frozen=True)
class Recipe:
    """Settings for training a classifier: ℓp mirror descent on the summed loss, as in paper B."""

    p: float = 1.1
    lr: float = 8e-4
    batch: int = 100
    epochs: int = 40
    stop: float = 0.995  # training accuracy at which the run ends
    patience: int | None = None  # or epochs without a better test accuracy after which it ends
    seed: int = 0
    parts: int = 4  # sub-batches of texts of similar length, computed one after the other
    multiple: int = 64  # lengths are padded to multiples of this
    compiled: bool = False
    packed: bool = False  # texts follow each other without padding; on a GPU only
    decay: float = 0.0  # of W_K and W_Q alone, decoupled: they shrink by 1 − lr · decay per step

    def __post_init__(self) -> None:
        check_whole(batch=self.batch, epochs=self.epochs, parts=self.parts, multiple=self.multiple)
        if not isinstance(self.seed, int):
            raise InputError("seed", repr(self.seed), "a whole number")
        if not isinstance(self.decay, int | float) or not 0.0 <= self.decay * self.lr < 1.0:
            raise InputError("decay", f"{self.decay!r}", "a number from 0 to below 1/lr")
        if not isinstance(self.stop, int | float) or not self.stop > 0.0:
            raise InputError("stop", f"{self.stop!r}", "an accuracy above 0")


@final
@dataclass(eq=False, repr=False)
class TextRun(Summarised):
    """A trained classifier, and the history of its epochs."""

    model: TextClassifier
    recipe: Recipe
    history: list[dict[str, float]] = field(default_factory=list)
    data: str = ""  # digests of the texts

    def summary(self) -> dict[str, str]:
        """Return the number of epochs and the accuracies, by name."""
        return {
            "epochs": str(len(self.history)),
            "test accuracy": f"{self.last:.4g} at the end, {self.best:.4g} in the best epoch",
            "optimiser": f"mirror descent, p = {self.recipe.p:g}, lr = {self.recipe.lr:g}",
        }

    @property
    def best(self) -> float:
        """Test accuracy of the best epoch, the number that the papers report."""
        return max((row["test"] for row in self.history), default=float("nan"))

    @property
    def last(self) -> float:
        """Test accuracy of the last epoch."""
        return self.history[-1]["test"] if self.history else float("nan")

    def record(self) -> dict[str, Any]:
        """Return the run as a JSON-ready record."""
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
    """Train a text classifier, and test it after every epoch.

    Every epoch has its own seed. A run that stops at any moment and restarts with the same ``out``
    resumes after its last epoch and reaches the same numbers.

    Args:
        train, test: token ids and labels, see :func:`attnmargin.text.word_pieces`.
        shape: sizes; by default size 3 of paper B.
        recipe: power, rate, batch size and so on.
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
        save = resume(run, out, lambda tensors: _load(model, tensors))
        parts = [
            Batches(part, padding, target, recipe.multiple, shape.length) for part in (train, test)
        ]
        _check_lengths(parts, shape)
        optimiser = MirrorDescent(model.parameters(), lr=recipe.lr, p=recipe.p)
        if recipe.decay:
            kept = 1.0 - recipe.lr * recipe.decay
            optimiser.register_step_pre_hook(lambda *_: model.shrink_factors(kept))
        for weights in model.parameters():  # gradients accumulate here over the parts of a batch
            weights.grad = torch.zeros_like(weights)
        read = _reader(model, recipe, target)

        def epoch(k: int) -> dict[str, float]:
            torch.manual_seed(seed_of("text epoch", k, base=recipe.seed))
            model.train()
            row = _epoch(read, optimiser, parts[0], recipe, k, progress)
            model.eval()
            return row | {"test": accuracy(read, parts[1], recipe)}

        run_epochs(run, recipe.lr, lambda: _finished(run), epoch, lambda: save(model.state_dict()))
    return run


def _reader(model: TextClassifier, recipe: Recipe, device: torch.device) -> Reader:
    """Return the function from texts and places to logits and labels."""
    forward: Any = model.packed if recipe.packed else model
    if recipe.compiled:
        # Compile one graph per size; a GPU launches it as a whole.
        mode = "reduce-overhead" if device.type == "cuda" else "default"
        dynamo: Any = torch._dynamo.config
        dynamo.recompile_limit = max(dynamo.recompile_limit, _GRAPHS)
        forward = torch.compile(forward, dynamic=False, mode=mode)

    def read(data: Batches, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        texts, labels = data.pack(places, _FILL) if recipe.packed else data.take(places)
        with _precision(device):
            logits = forward(texts)
        return logits.float(), labels

    return read


def _load(model: TextClassifier, tensors: dict[str, Tensor]) -> None:
    model.load_state_dict(tensors)


def _check_lengths(parts: list[Batches], shape: Shape) -> None:
    longest = max(part.longest for part in parts)
    if longest > shape.length:
        got = f"{shape.length} for texts of {counted(longest, 'token')}"
        raise InputError("length", got, "room for the longest text")


def _finished(run: TextRun) -> bool:
    history = run.history
    if not history or len(history) >= run.recipe.epochs:
        return bool(history)
    tests, patience = [row["test"] for row in history], run.recipe.patience
    waited = len(tests) - 1 - tests.index(max(tests))
    late = patience is not None and waited >= patience
    return late or history[-1]["train"] >= run.recipe.stop


def _precision(device: torch.device) -> AbstractContextManager[Any]:
    if device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


def _epoch(
    read: Reader,
    optimiser: MirrorDescent,
    data: Batches,
    recipe: Recipe,
    epoch: int,
    progress: Progress | None,
) -> dict[str, float]:
    """Make one pass over the texts; return mean loss, running accuracy and seconds."""
    start, device = time.perf_counter(), data.ids.device
    pieces = 1 if recipe.packed else recipe.parts
    batches = data.shuffled(recipe.batch, seed_of("text order", epoch, base=recipe.seed))
    total, right = torch.zeros((), device=device), torch.zeros((), device=device)
    for k, places in enumerate(batches):
        optimiser.zero_grad(set_to_none=False)
        for part in np.array_split(places, min(pieces, len(places))):
            logits, labels = read(data, part)
            loss = F.cross_entropy(logits, labels, reduction="sum")
            loss.backward()
            total += loss.detach()
            right += (logits.detach().argmax(-1) == labels).sum()
        optimiser.step()
        if progress is not None:
            progress(epoch * len(batches) + k + 1, recipe.epochs * len(batches))
    n = len(data.lengths)
    return epoch_row(epoch, float(total) / n, float(right) / n, start)


@torch.no_grad()
def accuracy(read: Reader, data: Batches, recipe: Recipe) -> float:
    """Compute the share of texts classified correctly."""
    right = torch.zeros((), device=data.ids.device)
    batches = data.shuffled(recipe.batch, 0) if recipe.packed else data.ordered(_READ)
    for places in batches:
        logits, labels = read(data, places)
        right += (logits.argmax(-1) == labels).sum()
    return float(right) / len(data.lengths)
