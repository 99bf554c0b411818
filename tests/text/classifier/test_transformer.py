"""The classifier of paper B: its layers."""

import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.classifier.transformer import Block
from tests.texts import SMALL


def test_a_block_is_that_of_torch_without_biases() -> None:
    """Post-norm, ReLU: the layer of torch, with its biases set to zero."""
    own = Block(am.text.Shape(10, **SMALL)).eval().double()
    other = (
        torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, bias=False).eval().double()
    )
    with torch.no_grad():
        other.self_attn.in_proj_weight.copy_(own.attention.inner.weight)
        other.self_attn.out_proj.weight.copy_(own.attention.outer.weight)
        other.linear1.weight.copy_(own.up.weight)
        other.linear2.weight.copy_(own.down.weight)
    x = torch.randn(3, 5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    found = own(x, ~hidden[:, None, None, :])
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
        assert not torch.equal(block.attention(x, None), block.attention(x, None))
    block.eval()
    assert torch.equal(block(x, None), block(x, None))


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
