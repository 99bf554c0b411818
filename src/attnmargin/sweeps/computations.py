"""Computations for sweeps by name: predict, solve and train on random data or a file."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.certificate import Status
from attnmargin.margin.implied import implication, implied_method
from attnmargin.margin.norms import Norm
from attnmargin.margin.solution import Solution
from attnmargin.prediction.comparison import compare
from attnmargin.prediction.entry import predict
from attnmargin.solvers.entry import solve
from attnmargin.training import Trajectory
from attnmargin.training.loop import train
from attnmargin.training.measures import decided

_NEEDS = "n, T and d, or a file"


def solve_points(
    data: AttentionData, *, norm: str | float = "fro", time_limit: float | None = None
) -> dict[str, Any]:
    """Solve the SVM of the best tokens: status, value, margin, gap, support."""
    problem = token_problem(data.X, data.z, optimal_tokens(data), data.mask)
    return _of_solution(solve(problem, norm, time_limit=time_limit))


def train_points(
    data: AttentionData,
    *,
    parameter: str = "W",
    method: str | None = None,
    norm: str | float | None = None,
    p: float = 2.0,
    lr: float | str = 0.1,
    start: str = "zero",
    steps: int = 2000,
    normalize: bool = True,
    loss: str = "logistic",
    penalty: float = 0.0,
    width: int | None = None,
    every: int | None = None,
    trial_seed: int = 0,
) -> dict[str, Any]:
    """Train, and compare the end with the SVM of what was selected.

    With ``every``, the course is kept as well: loss and largest probability, ``(R, trials)``.
    """
    method = method or implied_method(p)
    run = train(data, parameter, method, norm=norm, p=p, lr=lr, steps=steps, normalize=normalize,
                loss=loss, penalty=penalty, width=width, record=every or max(steps, 1),
                init=_start(data, parameter, start, trial_seed), seed=trial_seed)  # fmt: skip
    W = run.W[-1]
    found = {"loss": run.loss[-1], "probability": run.probability[-1],
             "length": torch.linalg.matrix_norm(W), "decided": decided(data, W)}  # fmt: skip
    found |= _of_end(data, run, implication(parameter, method, norm, p).norm)
    course = {"steps": run.steps, "losses": run.loss, "probabilities": run.probability}
    return found | (course if every else {})


def predict_points(
    data: AttentionData,
    *,
    parameter: str = "W",
    method: str | None = None,
    norm: str | float | None = None,
    p: float = 2.0,
    lr: float = 0.1,
    start: str = "zero",
    steps: int = 20_000,
    normalize: bool = True,
    loss: str = "logistic",
    trial_seed: int = 0,
) -> dict[str, Any]:
    """Predict what the run selects: verdict, since, best tokens, status, value, margin, gap."""
    prediction = predict(data, parameter, p, init=_start(data, parameter, start, trial_seed),
                         lr=lr, normalize=normalize, method=method, norm=norm, steps=steps,
                         loss=loss, seed=trial_seed)  # fmt: skip
    best = (prediction.selection == prediction.best).double()
    found = {"verdict": np.asarray(prediction.verdict, dtype=str), "since": prediction.since,
             "best tokens": best.flatten(len(data.batch_shape)).mean(-1)}  # fmt: skip
    return found | _of_solution(prediction.solution)


FUNCTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "predict": predict_points,
    "solve": solve_points,
    "train": train_points,
}


@final
@dataclass(frozen=True)
class DataFile:
    """A file that a sweep reads, with the fingerprint of its contents."""

    path: Path
    contents: str


@final
@dataclass(frozen=True)
class Computation:
    """A computation by name, on random data of a shape or on the instances of a file.

    A file is named by its contents: the same points of another file are other points, and a copy
    of it on another machine is the same.
    """

    name: str
    record: tuple[str, ...] = ()  # names of what is saved; all by default
    files: Mapping[str, DataFile] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Its name for the fingerprint of points."""
        contents = ",".join(f"{name}={own.contents}" for name, own in sorted(self.files.items()))
        return " ".join(filter(None, (f"attnmargin {self.name}", ",".join(self.record), contents)))

    @property
    def __signature__(self) -> inspect.Signature:
        """The settings that it accepts."""
        own = [p for f in (FUNCTIONS[self.name], self._data) for p in _keywords(f)]
        return inspect.Signature([p for p in own if p.name != "trial_seed"])

    def __call__(self, *, trials: int, seed: int, **settings: Any) -> dict[str, Any]:
        """Compute all trials of a point."""
        shape = {k: settings.pop(k) for k in list(settings) if k in _names(self._data)}
        data = self._data(trials=trials, seed=seed, **shape)
        function = FUNCTIONS[self.name]
        if "trial_seed" in _names(function):
            settings["trial_seed"] = seed
        found = function(data, **settings)
        return {name: found[name] for name in self.record or found if name in found}

    def _data(
        self,
        *,
        trials: int,
        seed: int,
        n: int | None = None,
        T: int | None = None,
        d: int | None = None,
        file: str | None = None,
        distribution: str = "sphere",
        self_attention: bool = False,
        min_gap: float = 0.0,
    ) -> AttentionData:
        if file is not None:
            if (n, T, d) != (None, None, None):
                raise InputError("file", "a shape as well", _NEEDS)
            return self._read(file, trials)
        if n is None or T is None or d is None:
            raise InputError("grid", "no shape", _NEEDS)
        return random_data(n, T, d, trials, name="sweep", seed=seed, distribution=distribution,
                           self_attention=self_attention, min_gap=min_gap)  # fmt: skip

    def _read(self, name: str, trials: int) -> AttentionData:
        own = self.files.get(name)
        if own is None:
            raise InputError("file", repr(name), f"one of {', '.join(self.files) or 'none'}")
        if contents(own.path) != own.contents:
            raise InputError(
                "file", f"{own.path}, which changed", "the file that the sweep began with"
            )
        return one_batch(AttentionData.load(own.path), trials)


def one_batch(data: AttentionData, trials: int | None = None) -> AttentionData:
    """Return data with one batch dimension, the trials."""
    count = data.batch_shape.numel()
    if trials is not None and trials != count:
        raise InputError("trials", f"{trials} for a file of {count} instances", f"trials = {count}")
    flat = {k: _flat(getattr(data, k), len(data.batch_shape)) for k in ("X", "z", "y", "v", "mask")}
    return AttentionData(**flat)


def contents(path: Path) -> str:
    """Return the fingerprint of a file."""
    with check_file(path).open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _flat(x: Tensor | None, dimensions: int) -> Tensor | None:
    return None if x is None else x.reshape(-1, *x.shape[dimensions:])


def _of_solution(solution: Solution) -> dict[str, Any]:
    return {"status": np.asarray(solution.status, dtype=str), "value": solution.value,
            "margin": solution.margin, "gap": solution.certificate.gap,
            "support": solution.support.sum(-1)}  # fmt: skip


def _of_end(data: AttentionData, run: Trajectory, norm: Norm | None) -> dict[str, Any]:
    """Compare the end of a run with its SVM, if a norm is implied."""
    if norm is None:
        return {}
    found = compare(data, run, norm)
    status = np.asarray(found.solution.status, dtype=str)
    clear = found.decided & torch.as_tensor(status == Status.OPTIMAL)
    aligned = {"status": status, "correlation": found.correlation.where(clear, torch.nan)}
    return aligned if found.optimal is None else aligned | {"best tokens": found.optimal / data.n}


def _start(data: AttentionData, parameter: str, start: str, seed: int) -> Any:
    """Return where a run starts: None, or normal weights of length one in every trial."""
    if start == "zero" or (start == "random" and parameter == "KQ"):  # K, Q start at random
        return None
    if start != "random" or parameter != "W":
        needs = "zero, or with parameter W or KQ random"
        raise InputError("start", f"{start!r} with parameter {parameter!r}", needs)
    generator = torch.Generator().manual_seed(seed)
    W = torch.randn(*data.batch_shape, data.d, data.d, generator=generator, dtype=torch.float64)
    return (W / torch.linalg.matrix_norm(W)[..., None, None]).to(data.X)


def _keywords(function: Callable[..., Any]) -> list[inspect.Parameter]:
    own = inspect.signature(function).parameters.values()
    return [parameter for parameter in own if parameter.kind is parameter.KEYWORD_ONLY]


def _names(function: Callable[..., Any]) -> set[str]:
    return {parameter.name for parameter in _keywords(function)}
