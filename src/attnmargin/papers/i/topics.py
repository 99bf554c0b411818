"""I:order, I:trained: when a model of two topics leaves the topic of its prompt."""

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.seeds import seed_of
from attnmargin.graphs import Automaton, token_graphs
from attnmargin.graphs.next_token import next_token_data, next_token_head
from attnmargin.graphs.topics import (
    Continuation,
    Topic,
    continuation,
    inversions,
    mixture,
    most_likely,
    random_topics,
)
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    at_most,
    difference_of,
    mean_of,
    stated,
)
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture
from attnmargin.training import train

_K, _TOKENS, _TRAIN, _PROMPTS = 8, 5, 600, 300
_LENGTHS = (4, 8, 16, 32)
_SHARES, _OVERLAPS = (0.5, 0.7, 0.9), (2, 3, 4)
_STEPS = 20_000


def _drawn(task: Task, trial: int) -> tuple[Topic, NDArray[np.int64], NDArray[np.int64]]:
    """Draw two topics, and training data of both; the first is that of the prompts."""
    share, overlap = task.settings["share"], task.settings["overlap"]
    one, two = random_topics(_K, _TOKENS, overlap, "I", seed_of(task.seed, trial) >> 16)
    rng = np.random.default_rng(seed_of("I", task.seed, trial))
    own = round(share * _TRAIN)
    sequences, labels = mixture((one, two), (own, _TRAIN - own), 4, rng)
    return one, sequences, labels


def _prompts(topic: Topic, T: int, task: Task, trial: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed_of("I", "prompts", T, task.seed, trial))
    return topic.prompts(_PROMPTS, T, rng)


def _run(task: Task) -> Arrays:
    found: dict[str, list[float]] = {name: [] for name in ("strict", "kept", "unexplained")}
    changed, outnumbered = [], []
    for trial in range(task.trials):
        topic, sequences, labels = _drawn(task, trial)
        strict, soft = inversions(topic, sequences, labels, _K)
        automaton = Automaton(token_graphs(sequences, labels, _K))
        own = [
            continuation(topic, prompts, most_likely(automaton, prompts))
            for prompts in (_prompts(topic, T, task, trial) for T in _LENGTHS)
        ]
        found["strict"].append(float(strict.sum()))
        found["kept"].append(float((~soft).mean()))
        found["unexplained"].append(float(sum(_unexplained(c) for c in own)) * (not soft.any()))
        changed.append([float(c.changed.mean()) for c in own])
        outnumbered.append([float((c.changed & c.outnumbers).mean()) for c in own])
        task.progress(trial + 1, task.trials)
    arrays = {name: np.array(values) for name, values in found.items()}
    return {**arrays, "changed": np.array(changed), "outnumbered": np.array(outnumbered)}


def _unexplained(own: Continuation) -> int:
    """Count changes in which the predicted token does not outnumber the higher ones."""
    return int((own.changed & ~own.outnumbers).sum())


def _trained(task: Task) -> Arrays:
    """Train attention on a mixture, and compare its predictions with the automaton's."""
    E = torch.eye(_K, dtype=torch.float64)
    agree, same = [], []
    for trial in range(task.trials):
        topic, sequences, labels = _drawn(task, trial)
        automaton = Automaton(token_graphs(sequences, labels, _K))
        run = train(next_token_data(E, sequences), head=next_token_head(E, sequences, labels),
                    loss="log", lr=0.05, steps=_STEPS, record=_STEPS)  # fmt: skip
        prompts = _prompts(topic, 8, task, trial)
        learned, expected = attended(run.W[-1], prompts), most_likely(automaton, prompts)
        agree.append(float((learned == expected).mean()))
        both = [continuation(topic, prompts, own).changed for own in (learned, expected)]
        same.append(float(both[0].mean() - both[1].mean()))
        task.progress(trial + 1, task.trials)
    return {"agree": np.array(agree), "difference": np.array(same)}


def attended(W: torch.Tensor, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the token on which trained attention puts most, with embeddings 1, …, K."""
    ids = torch.from_numpy(prompts)
    logits = W.mT[ids[:, -1]].gather(1, ids)
    mass = torch.zeros(len(ids), len(W), dtype=W.dtype).scatter_add_(1, ids, logits.softmax(-1))
    found: NDArray[np.int64] = mass.argmax(1).numpy()
    return found


def _key(share: float, overlap: int) -> str:
    return f"share{round(100 * share)}-overlap{overlap}"


def _claims(results: Results) -> list[Claim]:
    every = list(results.values())
    strict = np.concatenate([own["strict"] for own in every])
    left = np.concatenate([own["unexplained"] for own in every])
    claims = [
        stated("(1) pairs whose order the mixture's graph inverts",
               Measured(float(strict.sum()), count=len(strict)), "0", not strict.any()),
        stated("(2) where attention keeps the order of the topic: changes in which the predicted "
               "token does not outnumber the higher ones",
               Measured(float(left.sum()), count=len(left)), "0", not left.any()),
    ]  # fmt: skip
    for share in _SHARES:
        rows = np.concatenate([results[_key(share, o)]["changed"] for o in _OVERLAPS])
        text = f"(3) prompts of {_LENGTHS[-1]} tokens, not of {_LENGTHS[0]}, change the topic: "
        claims.append(at_most(f"{text}difference of shares, topic in {share:.0%} of the data",
                              difference_of(rows[:, -1], rows[:, 0]), 0.0))  # fmt: skip
    return claims


def _trained_claims(results: Results) -> list[Claim]:
    agree = np.concatenate([own["agree"] for own in results.values()])
    off = np.concatenate([own["difference"] for own in results.values()])
    return [
        at_least("prompts for which training and the automaton agree", mean_of(agree), 0.98),
        at_most("share of changes, trained against automaton, difference",
                mean_of(np.abs(off)), 0.02),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for share in _SHARES:
        for overlap in _OVERLAPS:
            own, words = results[_key(share, overlap)], f"topic in {share:.0%}, {overlap} shared"
            changes = own["changed"].sum()
            explained = float(own["outnumbered"].sum() / changes) if changes else None
            found += [
                Measurement(
                    f"{words}: pairs whose order attention keeps", float(own["kept"].mean())
                ),
                Measurement(f"{words}: changes in which the token outnumbers", explained),
                Measurement(f"{words}: prompts that change topic", float(own["changed"].mean())),
            ]
    return found


def _pictures(results: Results) -> list[Picture]:
    panels = []
    for share in _SHARES:
        series = [
            mean_curve(f"{overlap} shared tokens", _LENGTHS,
                       list(results[_key(share, overlap)]["changed"].T), colour=k)
            for k, overlap in enumerate(_OVERLAPS)
        ]  # fmt: skip
        panels.append(Panel(title=f"topic in {share:.0%} of the training data",
                            axes=("length of the prompt", "share of prompts that change topic"),
                            series=series, logarithmic=(True, False)))  # fmt: skip
    caption = (
        f"Two topics of {_TOKENS} of {_K} tokens; a prompt of the first changes topic if the most "
        "likely next token is not the one of highest priority. Bands are 95 % intervals over "
        "pairs of topics."
    )
    return [Picture(name="topics", caption=caption, panels=panels)]


_POINTS = tuple(
    Point(_key(share, overlap), {"share": share, "overlap": overlap})
    for share in _SHARES
    for overlap in _OVERLAPS
)
EXPERIMENTS = (
    Experiment("I:order", "When a mixture of two topics changes the topic", 50, _POINTS,
               _run, _claims, _pictures, measurements=_measurements, unit="pairs of topics"),
    Experiment("I:trained", "Trained attention against the automaton", 5,
               tuple(p for p in _POINTS if p.settings["overlap"] == 3),
               _trained, _trained_claims, lambda results: [], unit="pairs of topics"),
)  # fmt: skip
