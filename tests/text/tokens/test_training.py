"""Training of token models: losses, decay, checkpoints, errors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.tokens.models import TokenModel
from tests.formulas import written_out
from tests.texts import one_word_decides


def test_the_first_epoch_has_the_loss_of_the_sequences_as_they_are() -> None:
    """One step of one batch: training sees repeated tokens as the model does."""
    own = am.text.token_importance(one_word_decides(20), am.text.Cleaning(least=1)).pieces
    recipe = am.text.TokenRecipe(layers=2, d=8, epochs=1, batch=20, parts=3, lr=1e-9, decay=0.0)
    run = am.text.train_tokens(own, recipe)
    f = torch.stack([written_out(run.model, own.row(i).tolist()) for i in range(len(own))]).detach()
    loss = F.softplus(-(2 * torch.from_numpy(own.labels) - 1) * f).mean()
    assert run.history[0]["loss"] == pytest.approx(float(loss), abs=1e-6)


def test_decay_shrinks_the_weights_as_adamw_does_it() -> None:
    own = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1)).pieces
    recipes = [
        am.text.TokenRecipe(d=4, epochs=1, batch=60, lr=0.1, decay=decay) for decay in (0.0, 2.0)
    ]
    plain, shrunk = (am.text.train_tokens(own, recipe).model for recipe in recipes)
    start = am.text.train_tokens(own, am.text.TokenRecipe(d=4, epochs=1, batch=60, lr=1e-30)).model
    torch.testing.assert_close(shrunk.E - plain.E, -0.1 * 2.0 * start.E)


def test_counts_and_ids_that_do_not_fit_are_refused() -> None:
    model = TokenModel(5, 4)
    with pytest.raises(am.InputError, match=r"counts: got shape \(1,\); needs that of the ids"):
        model(torch.tensor([[0, 1]]), torch.ones(1))
    padded = model(torch.tensor([[0, 5]]), torch.ones(1, 2))
    torch.testing.assert_close(padded, model(torch.tensor([[0]])))
    outside = am.text.Pieces(np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1]), ["a"])
    with pytest.raises(am.InputError, match="pieces: got ids outside of the vocabulary"):
        am.text.train_tokens(outside)


def test_a_look_after_every_epoch() -> None:
    own = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1)).pieces
    seen: list[float] = []
    run = am.text.train_tokens(
        own, am.text.TokenRecipe(d=4, epochs=3),
        look=lambda run: seen.append(run.history[-1]["loss"]),
    )  # fmt: skip
    assert seen == [row["loss"] for row in run.history]


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    own = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1)).pieces
    whole = am.text.train_tokens(own, am.text.TokenRecipe(d=8, epochs=6, drops=(3,), batch=16))
    am.text.train_tokens(
        own, am.text.TokenRecipe(d=8, epochs=2, drops=(3,), batch=16), out=tmp_path
    )
    later = am.text.train_tokens(
        own, am.text.TokenRecipe(d=8, epochs=6, drops=(3,), batch=16), out=tmp_path
    )  # fmt: skip
    assert [h["loss"] for h in whole.history] == [h["loss"] for h in later.history]
    assert torch.equal(whole.model.E, later.model.E)
    with pytest.raises(am.InputError, match="a run with another lr; needs an empty folder"):
        am.text.train_tokens(
            own, am.text.TokenRecipe(d=8, lr=1.0, drops=(3,), batch=16), out=tmp_path
        )
    other = own.part(np.arange(10, 50))
    with pytest.raises(am.InputError, match="a run with another corpus"):
        am.text.train_tokens(other, am.text.TokenRecipe(d=8, drops=(3,), batch=16), out=tmp_path)


def test_scale_and_shift_are_trained_and_resumed(tmp_path: Path) -> None:
    own = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1)).pieces
    recipes = [
        am.text.TokenRecipe(layers=2, d=8, epochs=epochs, batch=16, affine=True, start="paper")
        for epochs in (2, 4)
    ]
    am.text.train_tokens(own, recipes[0], out=tmp_path)
    later = am.text.train_tokens(own, recipes[1], out=tmp_path).model
    whole = am.text.train_tokens(own, recipes[1]).model
    for found, wanted, start in ((later.scale, whole.scale, 1.0), (later.shift, whole.shift, 0.0)):
        assert found is not None
        assert wanted is not None
        assert torch.equal(found, wanted)
        assert float((found.detach() - start).abs().max()) > 1e-3


def test_errors_of_training() -> None:
    empty = am.text.Pieces(np.array([0]), np.array([0, 1, 1]), np.array([0, 1]), ["a"])
    with pytest.raises(am.InputError, match="pieces: got a sequence without tokens"):
        am.text.train_tokens(empty)
    with pytest.raises(am.InputError, match="epochs: got 0"):
        am.text.TokenRecipe(epochs=0)
    with pytest.raises(am.InputError, match="drops: got 0; needs a whole number"):
        am.text.TokenRecipe(drops=(10, 0))
    with pytest.raises(am.InputError, match="drops: got 5; needs a tuple"):
        am.text.TokenRecipe(drops=5)  # type: ignore[arg-type]
    with pytest.raises(am.InputError, match=r"decay: got -1\.0; needs zero or a positive number"):
        am.text.TokenRecipe(decay=-1.0)
    found = am.text.token_importance(one_word_decides(), am.text.Cleaning(least=1))
    with pytest.raises(am.InputError, match="'attended' without a trained model"):
        found.ranked("attended", 3)
    with pytest.raises(am.InputError, match="run: got none"):
        found.agreement()
    with pytest.raises(am.InputError, match="least: got 1000000, which leaves no token in"):
        am.text.token_importance(one_word_decides(), am.text.Cleaning(least=10**6))
