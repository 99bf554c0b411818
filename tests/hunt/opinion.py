"""A second opinion of 200 certified points, with 50 digits: ``python -m tests.hunt.opinion``."""

import sys
from typing import Any

import torch
from mpmath import mp, mpf

import attnmargin as am
from tests.theory.funnels import Statement

_SHAPES = ((5, 5, 5), (6, 8, 10), (5, 5, 20))
_STEP = 0.1


def level_holds(data: am.AttentionData, W: torch.Tensor, step: float = _STEP) -> bool:
    """Theorem A at W for one instance, logistic loss, steps of this length, with 50 digits."""
    assert data.y is not None
    assert data.v is not None
    with mp.workdps(50):
        X, z, y, v = (_exact(x) for x in (data.X, data.z, data.y, data.v))
        n, T, d = data.n, data.T, data.d
        matrix = _exact(W)
        gamma = [[y[i] * _dot(x, v) for x in X[i]] for i in range(n)]
        best = [max(range(T), key=row.__getitem__) for row in gamma]
        first = [gamma[i][best[i]] for i in range(n)]
        gap = [first[i] - max(g for t, g in enumerate(gamma[i]) if t != best[i]) for i in range(n)]
        loss = [mp.log1p(mp.exp(-u)) for u in first]
        keys = [[sum(matrix[a][b] * z[i][b] for b in range(d)) for a in range(d)] for i in range(n)]
        total = mpf(0)
        for i in range(n):
            logits = [_dot(x, keys[i]) for x in X[i]]
            weights = [mp.exp(a - max(logits)) for a in logits]
            u = sum(w * g for w, g in zip(weights, gamma[i], strict=True)) / sum(weights)
            total += (mp.log1p(mp.exp(-u)) - loss[i]) / n
        least = min(mp.log1p(mp.exp(gap[i] - first[i])) - loss[i] for i in range(n)) / n
        if not total < least:
            return False
        # ℓ(γ − D̂) = ℓ(γ) + n (L − L⋆) in closed form
        drop = [first[i] + mp.log(mp.expm1(loss[i] + n * total)) for i in range(n)]
        B, bent = mpf(0), mpf(0)
        for i in range(n):
            size = mp.sqrt(_dot(z[i], z[i]))
            apart = max(_distance(a, b) for a in X[i] for b in X[i]) * size
            own = max(_distance(X[i][best[i]], b) for b in X[i]) * size
            B = max(B, min(apart, (1 + drop[i] / gap[i]) * own))
            spread = (max(gamma[i]) - min(gamma[i])) / 4
            bend = 1 / (1 + mp.exp(-first[i]))
            bent = max(bent, bend * min(drop[i], spread))
        solution = am.solve(am.token_problem(data.X, data.z, best))
        theta, b = 1 / mpf(float(solution.certificate.upper)), (1 + bent) * B
        x = b * mpf(step)
        return bool((mp.expm1(x) - x) / ((1 + bent) * mpf(step)) <= theta)


def _exact(x: Any) -> Any:
    return mpf(float(x)) if x.ndim == 0 else [_exact(part) for part in x]


def _dot(a: Any, b: Any) -> Any:
    return sum(p * q for p, q in zip(a, b, strict=True))


def _distance(a: Any, b: Any) -> Any:
    return mp.sqrt(sum((p - q) ** 2 for p, q in zip(a, b, strict=True)))


def opinions(count: int, seed: int = 0) -> dict[str, list[int]]:
    """Check certified points; how many of them each theorem proves, and how many are confirmed."""
    found = {"A": [0, 0], "B": [0, 0]}
    each = -(-count // len(_SHAPES))
    for shape in _SHAPES:
        data = am.random_data(*shape, trials=each, name="opinion", seed=seed)
        prediction = am.predict(data, lr=_STEP)
        assert prediction.ending is not None
        proof = prediction.ending.proof
        assert proof is not None
        assert proof.funnel is not None
        for k in prediction.ending.proved.nonzero()[:, 0].tolist():
            W = prediction.ending.W[k]
            if bool(proof.by_level[k]):
                name, good = "A", level_holds(data[k], W)
            else:
                statement = Statement(data[k], W.numpy(), prediction.selection[k].tolist())
                name = "B"
                good = bool(statement.holds(float(proof.funnel.tube.radius[k]), _STEP))
            found[name][0] += 1
            found[name][1] += good
    return found


if __name__ == "__main__":
    result = opinions(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    for name, (asked, confirmed) in result.items():
        print(f"Theorem {name}: {confirmed} of {asked} certified points confirmed with 50 digits")
