"""Checks of paper D on data where the answer is known."""

import math
from itertools import product

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.theory import paper_d
from tests.formulas import shortest


def named(model: am.embeddings.EmbeddingModel, lr: float) -> dict[str, am.theory.Check]:
    """All checks but Lemma 19, which tries many selections."""
    facts = paper_d.EmbeddingFacts(model, lr)
    found = (check(facts) for check in paper_d._CHECKS if check is not paper_d.lemma_19)
    return {check.name: check for check in found}


def ordinary(d: int = 512, seed: int = 0) -> am.embeddings.EmbeddingModel:
    tokens = am.embeddings.important_tokens(4, 3, seed=seed)
    return am.embeddings.random_embeddings(tokens, d=d, seed=seed)


def rows(model: am.embeddings.EmbeddingModel, chosen: torch.Tensor) -> np.ndarray:
    """Write out the rows of (9)."""
    E, found = model.E.numpy(), []
    for ids, own in zip(model.ids.tolist(), chosen.tolist(), strict=True):
        picked = [s for s, mine in zip(ids, own, strict=True) if mine]
        found += [E[s] - E[t] for s, t in product(picked, ids) if t not in picked]
    return np.array(found)


def test_checks_of_paper_d() -> None:
    data = am.embeddings.important_tokens(4, 3, seed=0)
    checks = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(data, d=512), lr=1.0)
    }
    found = {name: str(check.outcome) for name, check in checks.items()}
    assert [found[name] for name in ("Assumption 4", "Lemma 2")] == ["holds", "holds"]
    assert [found[name] for name in ("Theorem 5", "Lemma 19")] == ["fails"] * 2
    numbers = checks["Theorem 5"].numbers
    assert float(numbers["η₀ that it asks for"]) == 4 * 4**2 * 3**2
    assert float(numbers["log₁₀ of the d that it asks for"]) == pytest.approx(8 * np.log10(201))
    other = am.embeddings.LabelledTokens(
        data.ids, -data.y * np.array([1, -1, 1, 1]), data.vocabulary
    )
    again = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(other, d=16), lr=1.0)
    }
    assert str(again["Assumption 4"].outcome) == "fails"
    assert str(again["Lemma 19"].outcome) == "not decidable here"
    for name in ("Definition 15", "Definition 16", "Lemma 21"):
        assert str(again[name].outcome) == "not decidable here"
    assert str(again["Lemma 13"].outcome) == str(again["Lemma 6"].outcome) == "fails"


@pytest.mark.parametrize("seed", range(3))
def test_lemmas_3_and_21_by_another_solver(seed: int) -> None:
    model = ordinary(seed=seed)
    after = am.embeddings.first_step(model, lr=1.0).model
    checks = named(model, 1.0)
    own = rows(after, after.logits == after.logits.amax(-1, keepdim=True))
    p = shortest(own)
    assert p is not None
    numbers = checks["Lemma 3"].numbers
    assert float(numbers["‖p̂‖"]) == pytest.approx(float(np.linalg.norm(p)), rel=1e-7)
    tight = int((np.unique(own, axis=0) @ p < 1.0 + 1e-7).sum())
    assert 1 <= tight <= float(numbers["tight rows"])  # Lemma 20; the same row can occur twice
    important = torch.from_numpy(after.statistics().complete)[after.ids]
    p = shortest(rows(after, important))
    assert p is not None
    numbers = checks["Lemma 21"].numbers
    assert float(numbers["‖p̂‖"]) == pytest.approx(float(np.linalg.norm(p)), rel=1e-7)
    assert float(numbers["‖p̂‖"]) <= float(numbers["4n"]) == 16.0


def test_lemma_3_needs_a_direction() -> None:
    """Tokens of equal score do not move p, which stays zero."""
    E, p, v = [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [0.6, 0.6]
    model = am.embeddings.EmbeddingModel(E, p, v, [[0, 1], [0, 1]], [1, -1])
    assert str(named(model, 1.0)["Lemma 3"].outcome) == "fails"


@pytest.mark.parametrize("lr", [1e-3, 1.0, 30.0])
def test_lemmas_11_and_12_are_written_out(lr: float) -> None:
    model = ordinary()
    checks = named(model, lr)
    E, p = (x.clone().requires_grad_() for x in (model.E, model.p))
    s = torch.softmax((E @ p)[model.ids], -1)
    loss = torch.log1p(torch.exp(-model.y * (s * (E @ model.v)[model.ids]).sum(-1))).mean()
    of_E, of_p = torch.autograd.grad(loss, (E, p))
    E, p = (E - lr * of_E).detach(), (p - lr * of_p).detach()
    numbers = checks["Lemma 11"].numbers
    torch.testing.assert_close(numbers["largest ‖E¹‖"], E[model.ids.unique()].norm(dim=-1).max())
    torch.testing.assert_close(numbers["‖p¹‖"], p.norm())
    assert float(numbers["its bound"]) == pytest.approx(2.0 * (1.0 + 2.0 * lr))
    assert float(numbers["bound of ‖p¹‖"]) == pytest.approx(2.0 + 11.0 * lr * 512**-0.25)
    assert str(checks["Lemma 11"].outcome) == "holds"
    assert float(numbers["largest ‖E¹‖"]) <= float(numbers["its bound"])
    bound, pairs = 0.0, list(zip(model.ids.tolist(), model.y.tolist(), strict=True))
    for ids, y in pairs:
        alpha = [sum(sign * row.count(s) for row, sign in pairs) / 12.0 for s in ids]
        bound += math.log1p(math.exp(-lr / 6.0 * y * sum(alpha) + 1.0 / (22.0 * lr))) / 4.0
    numbers = checks["Lemma 12"].numbers
    assert float(numbers["bound"]) == pytest.approx(bound)
    s = torch.softmax((E @ p)[model.ids], -1)
    loss = torch.log1p(torch.exp(-model.y * (s * (E @ model.v)[model.ids]).sum(-1))).mean()
    torch.testing.assert_close(numbers["L(E¹, p¹)"], loss)
    asked = (88.0 * lr**2 + 111.0 * lr + 2.0) ** 8
    assert float(loss) <= bound or asked > 512
    assert str(checks["Lemma 12"].outcome) == ("holds" if asked <= 512 else "fails")


def test_divergence_needs_little_and_lemma_6_needs_divergence_alone() -> None:
    for model, word in ((ordinary(), "holds"), (ordinary(d=64), "fails")):
        checks = named(model, 1.0)
        assert str(checks["Lemma 13"].outcome) == str(checks["Lemma 6"].outcome) == word
        for name in ("Theorem 5", "Lemma 14", "Lemma 18"):
            assert str(checks[name].outcome) == "fails"
    copied = ordinary()
    copied.E[1] = copied.E[0]  # dependent embeddings: the event of the proof has not happened
    assert len(set(copied.ids.flatten().tolist()) & {0, 1}) == 2
    assert str(named(copied, 1.0)["Lemma 13"].outcome) == "fails"


def test_the_parts_of_theorem_5_ask_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine has such a d: the conditions alone."""
    monkeypatch.setattr(paper_d.EmbeddingFacts, "typical", True)
    facts = paper_d.EmbeddingFacts(ordinary(), lr=576.0)
    power = 8.0 * math.log10(88.0 * 576.0**2 + 111.0 * 576.0 + 2.0)
    for exponent, word in ((math.ceil(power), "holds"), (math.floor(power), "fails")):
        facts.d = 10**exponent
        for check in (paper_d.theorem_5, paper_d.lemma_14, paper_d.lemma_18, paper_d.lemma_12):
            assert str(check(facts).outcome) == word
        assert str(paper_d.lemma_21(facts).outcome) == word
        assert str(paper_d.lemma_13(facts).outcome) == "holds"
    facts = paper_d.EmbeddingFacts(ordinary(), lr=575.0)
    facts.d = 10 ** math.ceil(power)
    for check in (paper_d.theorem_5, paper_d.lemma_14, paper_d.lemma_18, paper_d.lemma_21):
        assert str(check(facts).outcome) == "fails"
    assert str(paper_d.lemma_12(facts).outcome) == "holds"


def test_the_lead_of_lemma_13_by_brute_force() -> None:
    for seed in range(5):
        model = ordinary(seed=seed)
        after = am.embeddings.first_step(model, lr=0.1).model
        complete, value = after.statistics().complete, (after.E @ after.v).tolist()
        leads: dict[int, list[float]] = {}
        for ids, y in zip(after.ids.tolist(), after.y.tolist(), strict=True):
            (own,) = [s for s in ids if complete[s]]
            leads.setdefault(own, []).extend(y * (value[own] - value[t]) for t in ids if t != own)
        wanted = max(min(found) for found in leads.values())
        check = named(model, 0.1)["Lemma 13"]
        assert float(check.numbers["lead of an important token"]) == pytest.approx(wanted)
        assert str(check.outcome) == ("holds" if wanted > 0.0 else "not decidable here")


def test_definitions_15_and_16_at_the_separating_direction() -> None:
    model = ordinary()
    after = am.embeddings.first_step(model, lr=30.0).model
    important = torch.from_numpy(after.statistics().complete)[after.ids]
    p = shortest(rows(after, important))
    assert p is not None
    logits, value = after.E.numpy() @ p, (after.E @ after.v).numpy()
    counts, mu = [0, 0, 0], math.inf
    for ids, y in zip(after.ids.tolist(), after.y.tolist(), strict=True):
        places = sorted({round(float(logits[s]), 6) for s in ids}, reverse=True)
        groups = [[s for s in ids if round(float(logits[s]), 6) == place] for place in places]
        counts = [counts[0] + len(groups[0]), counts[1] + len(groups[1]),
                  counts[2] + sum(map(len, groups[2:]))]  # fmt: skip
        mu = min(mu, *(sum(y * (value[i] - value[j]) for i in groups[0]) for j in groups[1]))
    checks = named(model, 30.0)
    numbers = checks["Definition 15"].numbers
    assert [float(numbers[name]) for name in ("selected", "in second place", "behind")] == counts
    assert float(checks["Definition 16"].numbers["μ"]) == pytest.approx(mu)
    assert str(checks["Definition 16"].outcome) == ("holds" if mu > 0 else "fails")


def drawn_model(sequences: list[list[int]], S: int, d: int = 600) -> am.embeddings.EmbeddingModel:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(S + 2, d, generator=generator).double() / d**0.5
    return am.embeddings.EmbeddingModel(
        rows[:S], rows[S], rows[S + 1] / rows[S + 1].norm(), sequences, [1, -1]
    )


def test_sequences_of_one_token_do_not_move_p() -> None:
    model = drawn_model([[0], [1]], 2)
    checks = named(model, 1.0)
    assert str(checks["Assumption 4"].outcome) == "holds"
    assert str(checks["Lemma 13"].outcome) == str(checks["Lemma 6"].outcome) == "fails"
    after = am.embeddings.first_step(model, 1.0).model
    assert float(after.gradients()[1].abs().max()) == 0.0


def test_tokens_that_never_occur_decide_nothing() -> None:
    model = drawn_model([[0, 2], [1, 2]], 4)
    far = model.at(model.E * torch.tensor([[1.0], [1.0], [1.0], [100.0]]).double(), model.p)
    for name in ("Lemma 2", "Lemma 11", "Lemma 13"):
        assert str(named(far, 1.0)[name].outcome) == str(named(model, 1.0)[name].outcome) == "holds"


def test_lemma_13_needs_a_head_that_the_tokens_do_not_make() -> None:
    """Its proof takes p̂ ⊥ v with E p̂ = (1, 0, 0); there is none if v is the sum of the tokens."""
    model = drawn_model([[0, 2], [1, 2]], 3)
    total = model.E.sum(0)
    args = (model.ids, model.y)
    made = am.embeddings.EmbeddingModel(model.E, model.p, total / total.norm(), *args)
    assert paper_d.EmbeddingFacts(model, 1.0).independent
    assert not paper_d.EmbeddingFacts(made, 1.0).independent


def test_equal_norms_are_not_smaller() -> None:
    """The example of ``other_selections``: both norms are √(2/3), up to rounding."""
    E, v = torch.eye(3).double(), torch.tensor([1.0, -1.0, 0.0]).double()
    for angle in torch.linspace(0.1, 3.0, 12).double():
        c, s = float(angle.cos()), float(angle.sin())
        turn = torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
        model = am.embeddings.EmbeddingModel(
            E @ turn, torch.zeros(3).double(), turn.mT @ v / 2**0.5, [[0, 2], [1, 2]], [1, -1]
        )
        facts = paper_d.EmbeddingFacts(model, 1e-20)
        assert str(paper_d.lemma_19(facts).outcome) == "fails"


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(am.InputError, match="model: got"):
        am.theory.check_embeddings(3, 1.0)  # type: ignore[arg-type]
