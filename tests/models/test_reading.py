"""Heads read by hooks from every family, and from the real MiniLM."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import attnmargin as am
from attnmargin.models import read_heads
from tests.models.instances import FAMILIES, REVIEWS, TEXTS, minilm, minilm_heads, small_model


def own_attention(model: Any, ids: list[int]) -> tuple[torch.Tensor, ...]:
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_attentions=True)
    model.set_attn_implementation(before)
    return tuple(out.attentions)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_of_every_family_is_the_models_own(family: str) -> None:
    model = small_model(family)
    heads = read_heads(model, TEXTS)
    assert len(heads) == 8
    assert heads.error <= 1e-6
    for i, ids in enumerate(TEXTS):
        own = own_attention(model, ids)
        for head in heads:
            expected = own[head.layer][0, head.index]
            found = head.attention[i, : len(ids), : len(ids)]
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=0.0)
            assert float(expected.max() - 1 / len(ids)) > 1e-3  # not uniform: weights matter


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "gpt_neox"])
def test_decoders_are_causal(family: str) -> None:
    heads = read_heads(small_model(family), TEXTS[:1])
    assert all(head.causal for head in heads)
    assert not bool(heads[1, 2].attention[0].triu(1).any())


def test_positions_of_these_families_are_rotary() -> None:
    rotary = {family: read_heads(small_model(family), TEXTS)[0].rotary for family in FAMILIES}
    assert {name for name, own in rotary.items() if own} == {"llama", "qwen2", "gpt_neox"}


def test_grouped_queries_share_their_keys() -> None:
    heads = read_heads(small_model("llama"), TEXTS)
    assert torch.equal(heads[0, 0].W_K, heads[0, 1].W_K)
    assert not torch.equal(heads[0, 1].W_K, heads[0, 2].W_K)
    assert not torch.equal(heads[0, 0].W_Q, heads[0, 1].W_Q)


def test_a_sliding_window_is_read_from_the_model() -> None:
    changes = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}
    head = read_heads(small_model("qwen2", **changes), TEXTS[:1])[0]
    assert not head.causal
    assert head.visible(0).sum(-1).tolist() == [1, 2, 3, 3, 3, 3, 3]


def test_the_implementation_of_the_model_changes_nothing_and_comes_back() -> None:
    model = small_model("bert")
    model.train()
    model.set_attn_implementation("sdpa")
    fast = read_heads(model, TEXTS)
    assert model.config._attn_implementation == "sdpa"
    assert model.training
    model.set_attn_implementation("eager")
    assert torch.equal(fast[1, 1].attention, read_heads(model, TEXTS)[1, 1].attention)


def test_layers_and_heads_are_chosen() -> None:
    heads = read_heads(small_model("albert"), TEXTS, layers=1, heads=[0, 3])
    assert [(head.layer, head.index) for head in heads] == [(1, 0), (1, 3)]
    with pytest.raises(am.InputError, match=r"layers: got 2; needs 0 to 1 for a model of 2 lay"):
        read_heads(small_model("albert"), TEXTS, layers=2)
    with pytest.raises(am.InputError, match=r"heads: got 4; needs 0 to 3 for a model of 4 heads"):
        read_heads(small_model("albert"), TEXTS, heads=4)


def test_minilm_is_read_exactly() -> None:
    heads = minilm_heads()
    assert len(heads) == 72
    assert heads.error <= 1e-6
    assert heads.words[0][:3] == ["[CLS]", "a", "warm"]
    assert heads[5, 11].W.shape == (384, 385)


def test_a_model_that_computes_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("bert")
    kind = type(model.encoder.layer[1].attention.self)
    plain = kind.forward

    def forward(self: Any, *args: Any, **named: Any) -> tuple[torch.Tensor, torch.Tensor]:
        out, shares = plain(self, *args, **named)
        return out, shares.roll(1, -1)

    monkeypatch.setattr(kind, "forward", forward)
    with pytest.raises(am.InputError, match=r"attention that differs by .* what its weights say"):
        read_heads(model, TEXTS)


def test_where_float32_is_off_by_more_float64_decides() -> None:
    model = small_model("bert")
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.self.query.weight.mul_(40.0)
            layer.attention.self.key.bias.add_(300.0)  # cancels, and costs digits
    heads = read_heads(model, TEXTS)
    assert heads[0].hidden.dtype == torch.float32
    assert heads.error <= 1e-9


def test_bad_models_and_texts_are_one_sentence() -> None:
    model = small_model("bert")
    with pytest.raises(am.InputError, match="a Linear without attention weights"):
        read_heads(torch.nn.Linear(2, 2), TEXTS)
    with pytest.raises(am.InputError, match="model: got a int; needs a transformers model"):
        read_heads(3, TEXTS)
    with pytest.raises(am.InputError, match=r"in torch.float16; needs float32 or float64"):
        read_heads(small_model("bert").half(), TEXTS)
    with pytest.raises(am.InputError, match="texts: got text 1 of 65 tokens; needs at most 64"):
        read_heads(model, [[1, 2], [1] * 65])
    with pytest.raises(am.InputError, match="texts: got an empty text at place 1"):
        read_heads(model, [[1, 2], []])
    with pytest.raises(am.InputError, match="texts: got no text"):
        read_heads(model, [])
    with pytest.raises(am.InputError, match="texts: got one string; needs a list"):
        read_heads(model, "a text")
    with pytest.raises(am.InputError, match="texts: got token id 50 in text 0; needs ids from 0"):
        read_heads(model, [[50]])
    with pytest.raises(am.InputError, match="tokenizer: got none for texts in words"):
        read_heads(model, ["words"])
    with pytest.raises(am.InputError, match="texts: got a float at place 0"):
        read_heads(model, [1.5])  # type: ignore[arg-type]


def test_texts_are_cut_only_on_request() -> None:
    loaded = minilm()
    long = " ".join(["word"] * 600)
    with pytest.raises(am.InputError, match="text 0 of 602 tokens; needs at most 512 tokens"):
        read_heads(loaded.model, [long], loaded.tokenizer)
    heads = read_heads(loaded.model, [long], loaded.tokenizer, layers=0, heads=0, length=9)
    assert heads.words[0] == ["[CLS]", *["word"] * 7, "[SEP]"]
    with pytest.raises(am.InputError, match="texts: got an empty text at place 0"):
        read_heads(loaded.model, ["  "], loaded.tokenizer)


def test_roberta_counts_its_first_positions_out() -> None:
    model = small_model("roberta")
    with pytest.raises(am.InputError, match="needs at most 62 tokens"):
        read_heads(model, [[1] * 63])
    assert read_heads(model, [[5] * 62]).error <= 1e-6


def test_folders_that_are_no_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match=r"a folder without config\.json; needs a folder with"):
        read_heads(tmp_path, ["a"])
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(am.InputError, match=r"model: got .*needs a folder with config\.json"):
        read_heads(tmp_path, ["a"])
    with pytest.raises(am.InputError, match="which does not exist"):
        read_heads("./nowhere", ["a"])
    with pytest.raises(am.InputError, match="model: got no-such-model"):
        read_heads("no-such-model", ["a"])


def test_a_saved_model_is_read_from_its_folder(tmp_path: Path) -> None:
    loaded = minilm()
    small_model("bert", vocab_size=loaded.tokenizer.vocab_size).save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    heads = read_heads(str(tmp_path), list(REVIEWS[:1]))
    assert len(heads) == 8
    assert heads.words[0][1] == "a"


def test_the_library_starts_without_transformers() -> None:
    code = "import attnmargin as am, sys; am.models.Head; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_heads_are_found_by_place() -> None:
    heads = minilm_heads()
    assert heads[13] is heads[1, 1]
    with pytest.raises(am.InputError, match="a layer and a head that were read"):
        heads[6, 0]
