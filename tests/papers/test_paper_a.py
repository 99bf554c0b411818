"""Paper A: the conjecture of Section 5.2, finite parts, and claims that can fail."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.attention.softmax import probabilities
from attnmargin.papers.a import mixtures, ranks, relu, section5, section9, selections
from attnmargin.papers.a.conjecture import conjecture_experiment
from attnmargin.papers.engine.claims import Claim, at_least
from attnmargin.papers.engine.experiment import Arrays, Task
from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import find
from attnmargin.theory.check import holds
from attnmargin.theory.table import check_theory


def test_the_conjecture_from_one_call() -> None:
    record = conjecture_experiment(8, (6, 30), n=3, T=3)
    assert record["holds"]
    assert [row["trials"] for row in record["rows"]] == [4, 4]
    wide = record["rows"][1]
    assert wide["both"] == wide["selected"] > 0
    with pytest.raises(am.InputError, match="trials: got 1; needs at least one for each of 2"):
        conjecture_experiment(1, (6, 30))


def test_conditions_of_a_batch_are_those_of_the_checks() -> None:
    data = am.random_data(2, 3, 4, trials=30, name="conditions")
    found = {check.label: holds(check) for check in check_theory(data)}
    b1, other = section5.conditions(data)
    assert torch.equal(b1, found["A: Assumption B.1"])
    assert torch.equal(other, found["A: Assumption D"])
    assert 0 < int(b1.sum()) < 30
    assert 0 < int(other.sum()) < 30


def test_a_finite_part_that_is_set_gives_the_mixture() -> None:
    """The logits of masked tokens stay as they were, up to the shift of the selected ones."""
    data = mixtures._orthonormal(4, "finite", seed=0)
    assert data.v is not None
    best = am.selections.optimal_composition(data, am.heads.QuadraticHead(data.v, 0.5))
    W = torch.randn(4, 10, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    changed, inside = mixtures.settled_inside(data, best, W)
    s = probabilities(data, changed).where(best > 0, 0.0)
    torch.testing.assert_close(s / s.sum(-1, keepdim=True), best)
    moved = ((changed - W).unsqueeze(1) * inside).sum((-2, -1))
    assert float(moved.abs().amax()) > 0.1
    outside = torch.einsum("btd,bde,be->bt", data.X[:, 0], changed - W, data.z[:, 0])
    assert float(outside[best[:, 0] == 0].abs().amax()) < 1e-12


def _verdicts(name: str, trials: int, out: Path) -> dict[str, str]:
    record = reproduce(find(name), trials=trials, out=out)
    return {claim["claim"]: claim["verdict"] for claim in record["claims"]}


def _failed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [words for words in before if before[words] == "holds" and after[words] == "fails"]


def test_figure_9_notices_other_mixtures_and_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _verdicts("A:fig9", 5, tmp_path / "a")
    true, generator = am.train, torch.Generator().manual_seed(0)

    def disturbed(*args: Any, **options: Any) -> Any:
        run = true(*args, **options)
        noise = torch.randn(run.W[-1].shape, generator=generator, dtype=torch.float64)
        run.W[-1] += noise * torch.linalg.matrix_norm(run.W[-1])[:, None, None] / 10.0
        return run

    monkeypatch.setattr(mixtures, "train", disturbed)
    failed = _failed(before, _verdicts("A:fig9", 5, tmp_path / "b"))
    for start in ("distance of the trained mixture", "continued: correlation with SVMeq",
                  "continued: correlation with Gen-SVM"):  # fmt: skip
        assert any(words.startswith(start) for words in failed), start


def test_the_conjecture_of_small_instances_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """If D is taken to hold always, training selects other tokens from adversarial starts."""
    true = section5.conditions
    everywhere = lambda data: (true(data)[0], torch.ones(data.batch_shape, dtype=torch.bool))  # noqa: E731
    monkeypatch.setattr(section5, "conditions", everywhere)
    monkeypatch.setattr(section5, "_ROUNDS", (2000, 8000))
    task = Task({"n": 2, "T": 3, "d": 4}, 10, 0, lambda done, total: None)
    own = section5._run(task)
    assert own["d"].all()
    assert not own["selected adversarial"].all()


def test_section_9_notices_short_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _verdicts("A:sec9", 4, tmp_path / "a")
    monkeypatch.setattr(section9, "_LENGTH", 20.0)
    failed = _failed(before, _verdicts("A:sec9", 4, tmp_path / "b"))
    assert any("SVM of the selected tokens" in words for words in failed)
    assert any("two runs with one selection" in words for words in failed)


def test_changes_of_selections_by_hand() -> None:
    selection = np.zeros((2, 3, 4, 5), dtype=int)  # rates, starts, trials, n
    selection[0, 1, 2, 3] = 1
    by_start, by_rate = section9._changes({"selection": selection})
    assert np.argwhere(by_start).tolist() == [[0, 2]]
    assert np.argwhere(by_rate).tolist() == [[1, 2]]


def _words(claims: list[Claim], verdict: str) -> list[str]:
    return [claim.claim for claim in claims if claim.verdict == verdict]


def test_larger_n_needs_larger_m_fails_where_it_does_not() -> None:
    """Let alignment come at m = 2 for n = 5, m = 4 for n = 10, m = 6 for n = 15; then reverse."""
    rng = np.random.default_rng(0)

    def results(widths: dict[int, int]) -> dict[str, Arrays]:
        return {
            f"n{n}-T{T}-m{m}": {"off": (0.01 if m >= widths[n] else 0.5) + 0.01 * rng.random(9)}
            for n, T in ranks._CURVES
            for m in ranks._M
        }

    claims = ranks._claims_fig10(results({5: 2, 10: 4, 15: 6}))
    assert _words(claims, "holds") == [claim.claim for claim in claims]
    failed = _words(ranks._claims_fig10(results({5: 5, 10: 4, 15: 3})), "fails")
    assert [words for words in failed if "least m" in words] == failed
    assert len(failed) == 2


def test_shares_that_fall_with_the_width_fail() -> None:
    flags = [np.arange(100) < count for count in (10, 60, 90)]
    assert selections._least_rise(flags).value == pytest.approx(0.3)
    fall = selections._least_rise(flags[::-1])
    assert at_least("rises", fall, 0.0).verdict == "fails"


def test_two_tokens_with_all_labels_one_fail() -> None:
    own = {"most": np.repeat([1, 2], 50), "clear": np.ones(100, dtype=bool)}
    claims = relu._claims_ones({f"ones-d{d}": own for d in (4, 10)})
    assert {claim.verdict for claim in claims} == {"fails"}
