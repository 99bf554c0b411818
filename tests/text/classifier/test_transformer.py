"""The classifier of paper B: its layers."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.batches import Batches
from attnmargin.text.classifier.transformer import Block
from tests.texts import SMALL, pieces, shape


def test_a_block_is_that_of_torch_without_biases() -> None:
    """Post-norm, GELU: the layer of torch, with its biases set to zero."""
    own = Block(am.text.Shape(10, **SMALL)).eval().double()
    other = (
        torch.nn.TransformerEncoderLayer(16, 2, 24, activation="gelu", batch_first=True, bias=False)
        .eval()
        .double()
    )
    with torch.no_grad():
        other.self_attn.in_proj_weight.copy_(own.attention.inner.weight)
        other.self_attn.out_proj.weight.copy_(own.attention.outer.weight)
        other.linear1.weight.copy_(own.up.weight)
        other.linear2.weight.copy_(own.down.weight)
    x = torch.randn(3, 5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    found = own(x, own.attention(x, x, ~hidden[:, None, None, :]))
    wanted = other(x, src_key_padding_mask=hidden)
    torch.testing.assert_close(found[~hidden], wanted[~hidden])


def test_padding_changes_nothing() -> None:
    model = am.text.TextClassifier(am.text.Shape(30, **SMALL)).eval()
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    longer = F.pad(ids, (0, 6))
    torch.testing.assert_close(model(longer), model(ids))
    torch.testing.assert_close(model.attention(longer)[..., :5], model.attention(ids))
    torch.testing.assert_close(model.attention(longer).sum(-1), torch.ones(1, 2))


def test_there_are_no_biases() -> None:
    names = [
        name for name, _ in am.text.TextClassifier(am.text.Shape(30, **SMALL)).named_parameters()
    ]
    assert not [name for name in names if "bias" in name]


def test_dropout_is_in_attention_and_in_training_only() -> None:
    block = Block(am.text.Shape(10, **SMALL, dropout=0.5))
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng():
        assert not torch.equal(block.attention(x, x, None), block.attention(x, x, None))
        assert not torch.equal(block(x, x), block(x, x))
    block.eval()
    assert torch.equal(block.attention(x, x, None), block.attention(x, x, None))
    assert torch.equal(block(x, x), block(x, x))


def test_hidden_units_are_not_dropped() -> None:
    """With what is added to x dropped altogether, a block is two normalisations."""
    block = Block(am.text.Shape(10, **SMALL, dropout=0.5))
    block.dropout.p = 1.0
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    wanted = block.second(block.first(x))
    torch.testing.assert_close(block(x, x), wanted)


def test_two_classes_have_one_output() -> None:
    model = am.text.TextClassifier(am.text.Shape(30, **SMALL)).eval()
    logits = model(torch.tensor([[2, 7, 3]])).detach()
    assert model.head.weight.shape == (1, 16)
    assert float(logits[0, 0]) == 0.0
    one = F.binary_cross_entropy_with_logits(logits[:, 1], torch.ones(1))
    torch.testing.assert_close(F.cross_entropy(logits, torch.tensor([1])), one)
    three = am.text.TextClassifier(am.text.Shape(30, **SMALL, classes=3)).eval()
    assert three(torch.tensor([[2, 7, 3]])).shape == (1, 3)


def test_packed_texts_are_classified_alike() -> None:
    """Texts of different lengths, and filler after them, as one row of tokens."""
    data = pieces()
    model = am.text.TextClassifier(shape(data)).eval().double()
    batches = Batches(data, data.vocabulary.index("[PAD]"), torch.device("cpu"), 4, 16)
    places = np.array([3, 0, 7, 1])
    ids, labels = batches.take(places)
    for multiple in (1, 8, 64):
        packed, own = batches.pack(places, multiple)
        assert len(packed.ids) % multiple == 0
        assert int(packed.starts[-1]) == len(packed.ids)
        assert torch.equal(own, labels)
        torch.testing.assert_close(model.packed(packed), model(ids))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 3}, "heads: got 3 heads for width 16"),
        ({"layers": 0}, "layers: got 0"),
        ({"dropout": 1.0}, "dropout: got 1.0"),
    ],
)
def test_bad_shapes_get_one_sentence(change: dict[str, float], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.text.Shape(10, **{**SMALL, **change})  # type: ignore[arg-type]


def test_factors_give_the_logits_of_every_head() -> None:
    torch.manual_seed(0)
    model = am.text.TextClassifier(
        am.text.Shape(vocabulary=20, layers=2, heads=2, width=8, hidden=16)
    )
    model = model.double()
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    K, Q = model.factors()
    assert K.shape == Q.shape == (2, 2, 8, 4)
    for k, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        logits = x.unsqueeze(1) @ Q[k] @ K[k].mT @ x.unsqueeze(1).mT / 2.0
        torch.testing.assert_close(torch.softmax(logits, -1), block.attention.weights(x, None))
