"""Agreement: predicted importance of tokens beside the attention and the gradient of a model."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised
from attnmargin.base.seeds import seed_of
from attnmargin.text.tokens.importance import TokenImportance, frequent_from
from attnmargin.text.tokens.training import Bags

# Texts at a time, bootstrap samples, and how many of these at a time.
_BATCH, _SAMPLES, _BLOCK = 500, 200, 50

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModelAgreement(Summarised):
    """m frequent tokens: what the counts predict for them, and what a trained model does."""

    tokens: NDArray[np.int64]  # (m,)
    difference: Floats  # (m,): posterior difference
    attention: Floats  # (m,): mean attention to an occurrence; 1 is that of uniform attention
    gradient: Floats  # (m,): mean change of the output by an occurrence, gradient times embedding
    samples: Floats  # (B, 2): both rank correlations in samples of the texts

    def summary(self) -> dict[str, str]:
        """Return the rank correlations with their intervals, by name."""
        found = {name: self.correlation(name) for name in ("attention", "gradient")}
        words = {
            name: f"{r:.3f} ({low:.3f} to {high:.3f})" for name, (r, low, high) in found.items()
        }
        return {"tokens": f"{len(self.tokens):,}", **words}

    def correlation(self, name: str, level: float = 0.05) -> tuple[float, float, float]:
        """Return a rank correlation and its interval: "attention" or "gradient".

        Attention is compared with the absolute value of the posterior difference, the gradient
        with the difference itself. The interval comes from bootstrap samples of the texts, with
        the model as it is: the spread of the samples about their mean, around the correlation.
        """
        own = _spearman(*self._compared(name))
        samples = self.samples[:, ("attention", "gradient").index(name)]
        ends = np.quantile(samples, (level / 2.0, 1.0 - level / 2.0)) - samples.mean()
        low, high = np.clip(own + ends, -1.0, 1.0)
        return own, float(low), float(high)

    def gaps(self, name: str) -> Floats:
        """Return how much higher the model ranks each token than predicted, from −1 to 1."""
        from scipy.stats import rankdata

        predicted, found = self._compared(name)
        return (rankdata(found) - rankdata(predicted)) / max(len(found), 1)

    def _compared(self, name: str) -> tuple[Floats, Floats]:
        if name == "attention":
            return np.abs(self.difference), self.attention
        return self.difference, self.gradient


def model_agreement(
    found: TokenImportance, least: int | None = None, samples: int = _SAMPLES, seed: int = 0
) -> ModelAgreement | None:
    """Compare what the counts predict with what the trained model of a corpus attends to.

    Args:
        found: importance with a trained model.
        least: occurrences of a token that is compared, as in ``found.agreement``.
        samples: bootstrap samples of the texts.

    Returns:
        None if fewer than three tokens are that frequent.

    Example:
        >>> import attnmargin as am
        >>> from dataclasses import replace
        >>> planted = am.text.planted_corpus(200, words=30, deciding=14, length=30)
        >>> found = am.text.token_importance(planted.corpus, am.text.Cleaning(least=1))
        >>> run = am.text.train_tokens(found.pieces, am.text.TokenRecipe(d=8, lr=0.03, epochs=20))
        >>> both = am.text.model_agreement(replace(found, run=run))
        >>> all(both.correlation(name)[1] > 0.3 for name in ("attention", "gradient"))
        True
    """
    often = found.statistics.count >= frequent_from(len(found.pieces), least)
    tokens = np.flatnonzero(often)
    if len(tokens) < 3:
        return None
    parts = _contributions(found, often)
    every = _sums(parts, found.pieces.labels, np.ones((len(found.pieces), 1)))
    rng = np.random.default_rng(seed_of("agreement", base=seed))
    drawn = []
    for first in range(0, samples, _BLOCK):
        size = (len(found.pieces), min(_BLOCK, samples - first))
        sums = _sums(parts, found.pieces.labels, _weights(rng, *size))
        drawn += [_correlations(*(x[:, k] for x in sums)) for k in range(size[1])]
    difference, attention, gradient = (x[:, 0] for x in every)
    return ModelAgreement(tokens, difference, attention, gradient, np.array(drawn))


def _weights(rng: np.random.Generator, n: int, samples: int) -> Floats:
    """Draw how often each of n texts is in each sample, ``(n, samples)``."""
    drawn = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(samples)]
    return np.stack(drawn, 1).astype(float)


def _contributions(found: TokenImportance, often: NDArray[np.bool_]) -> list[Any]:
    """Return occurrences, attention over its mean, and gradients, texts × tokens each."""
    from scipy.sparse import csr_array

    assert found.run is not None
    model = found.run.model.eval()
    bags = Bags(found.pieces, model.E.device)
    column = np.cumsum(often) - 1
    lengths = found.pieces.lengths
    rows: list[Any] = []
    for places in bags.texts.ordered(_BATCH):
        ids, counts, _ = bags.take(places)
        shares, gradients = (x.double().cpu().numpy() for x in model.attributions(ids, counts))
        own, times = ids.cpu().numpy(), counts.cpu().numpy()
        inside = own < model.vocabulary
        inside[inside] = often[own[inside]]
        text = np.broadcast_to(places[:, None], own.shape)[inside]
        lifted = shares * lengths[places][:, None]
        rows.append((text, column[own[inside]], times[inside], lifted[inside], gradients[inside]))
    text, token, *values = (np.concatenate(part) for part in zip(*rows, strict=True))
    shape = (len(lengths), int(often.sum()))
    return [csr_array((x.astype(float), (text, token)), shape=shape) for x in values]


def _sums(parts: list[Any], labels: NDArray[np.int64], weights: Floats) -> list[Floats]:
    """Compute difference, attention and gradient per occurrence in weighted texts, ``(m, B)``."""
    counts, lifted, gradients = (part.T for part in parts)
    seen = np.maximum(counts @ weights, 1e-300)
    signed = counts @ (weights * (2.0 * labels - 1.0)[:, None])
    return [signed / seen, (lifted @ weights) / seen, (gradients @ weights) / seen]


def _correlations(difference: Floats, attention: Floats, gradient: Floats) -> tuple[float, float]:
    return _spearman(np.abs(difference), attention), _spearman(difference, gradient)


def _spearman(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    a, b = (rankdata(own) - (len(own) + 1) / 2.0 for own in (x, y))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0.0 else 0.0
