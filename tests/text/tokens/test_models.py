"""The two models of paper D."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.tokens.models import TokenModel
from tests.formulas import written_out


@pytest.mark.parametrize("layers", [1, 2])
def test_models_are_those_of_the_paper(layers: int) -> None:
    torch.manual_seed(0)
    model = TokenModel(6, 8, layers).double()
    rows = [[0, 1, 5], [2], [3, 3]]
    padded = torch.tensor([[0, 1, 5], [2, 6, 6], [3, 3, 6]])
    wanted = torch.stack([written_out(model, row) for row in rows])
    torch.testing.assert_close(model(padded), wanted)
    with pytest.raises(am.InputError, match="layers: got 3; needs 1 or 2"):
        TokenModel(6, 8, 3)


def test_layer_norm_with_scale_and_shift() -> None:
    torch.manual_seed(4)
    model = TokenModel(6, 8, 2, affine=True).double()
    plain = TokenModel(6, 8, 2).double()
    ids, rows = torch.tensor([[0, 1, 5], [3, 3, 6]]), [[0, 1, 5], [3, 3]]
    plain.load_state_dict({name: x for name, x in model.state_dict().items() if len(name) == 1})
    torch.testing.assert_close(model(ids), plain(ids))  # it starts without effect
    assert model.scale is not None
    assert model.shift is not None
    model.scale.data.normal_()
    model.shift.data.normal_()
    wanted = torch.stack([written_out(model, row) for row in rows])
    torch.testing.assert_close(model(ids), wanted)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"affine": True, "layers": 1}, "affine: got True with one layer; needs two layers"),
        ({"affine": 1}, "affine: got 1; needs True or False"),
        ({"start": "long"}, "start: got 'long'; needs 'short' or 'paper'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    own: dict[str, Any] = {"layers": 2, **options}
    with pytest.raises(am.InputError, match=words):
        TokenModel(6, 8, **own)
    with pytest.raises(am.InputError, match=words):
        am.text.TokenRecipe(**own)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_token_that_occurs_often_is_one_with_a_count(layers: int) -> None:
    torch.manual_seed(2)
    model = TokenModel(6, 8, layers).double()
    rows = [[0, 1, 5, 1, 1], [2, 2], [4]]
    ids, counts = torch.tensor([[0, 1, 5], [2, 6, 6], [4, 6, 6]]), [[1, 3, 1], [2, 0, 0], [1, 0, 0]]
    wanted = torch.stack([written_out(model, row) for row in rows])
    torch.testing.assert_close(model(ids, torch.tensor(counts)), wanted)


def test_products_of_both_models_start_small() -> None:
    torch.manual_seed(3)
    d = 256
    sizes = []
    for layers in (1, 2):
        model = TokenModel(50, d, layers)
        x = model.E if layers == 1 else F.layer_norm(model.E, (d,))
        sizes += [float((x @ y).detach().std()) * d**0.5 for y in (model.p, model.v)]
    assert all(0.7 < size < 1.4 for size in sizes), sizes


def test_the_start_of_the_paper_has_the_lengths_of_one_layer() -> None:
    found = []
    for layers, start in ((1, "short"), (2, "paper"), (2, "short")):
        torch.manual_seed(5)
        found.append(TokenModel(50, 256, layers, start=start))
    one, paper, short = found
    for name in ("E", "p", "v"):
        assert torch.equal(getattr(one, name), getattr(paper, name))
    torch.testing.assert_close(short.p * 16.0, paper.p)
    assert float(paper.v.detach().norm()) == pytest.approx(1.0)


def test_the_one_layer_model_is_that_of_the_theory() -> None:
    torch.manual_seed(1)
    model = TokenModel(5, 4).double()
    ids = torch.tensor([[0, 1, 2], [3, 4, 4]])
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    F.softplus(-y * model(ids)).mean().backward()
    E, p, v = (x.detach() for x in (model.E, model.p, model.v))
    of_E, of_p = am.embeddings.EmbeddingModel(E, p, v, ids, y).gradients()
    torch.testing.assert_close(model.E.grad, of_E)
    torch.testing.assert_close(model.p.grad, of_p)
