"""The classifier of paper B: its layers, training, checkpoints, and the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.base.safetensors import read_tensors, write_tensors
from attnmargin.optim.kernel import can_fuse, fits
from attnmargin.text.batches import Batches
from attnmargin.text.classifier.analysis import attention_shares, pivotal_shares, sparsity
from attnmargin.text.classifier.transformer import Block
from tests.test_cli import run as command

SMALL = {"layers": 2, "heads": 2, "width": 16, "hidden": 24, "length": 32}


def reviews(n: int = 80) -> am.text.Corpus:
    """Texts whose label is one word among others."""
    rng = np.random.default_rng(0)
    words = ["the", "a", "film", "plot", "scene", "actor", "very", "was"]
    labels = rng.integers(0, 2, n)
    texts = []
    for y in labels:
        chosen = list(rng.choice(words, rng.integers(3, 12)))
        chosen.insert(int(rng.integers(0, len(chosen))), "good" if y else "bad")
        texts.append(" ".join(chosen))
    return am.text.Corpus(texts, labels.astype(np.int64), ("neg", "pos"))


def pieces(n: int = 80) -> am.text.Pieces:
    own = reviews(n)
    return am.text.word_pieces(own, am.text.word_list(own.texts))


def shape(data: am.text.Pieces) -> am.text.Shape:
    return am.text.Shape(len(data.vocabulary), **SMALL)


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


def test_batches_hold_every_text_once() -> None:
    data = pieces()
    batches = Batches(data, 0, torch.device("cpu"), 8, 32)
    for order in (batches.shuffled(7, 1), batches.ordered(7)):
        assert sorted(np.concatenate(order).tolist()) == list(range(len(data)))
    assert not np.array_equal(batches.shuffled(7, 1)[0], batches.shuffled(7, 2)[0])
    ids, labels = batches.take(np.array([3, 5]))
    assert ids.shape[1] % 8 == 0
    for row, i in zip(ids, (3, 5), strict=True):
        own = data.ids[data.start[i] : data.start[i + 1]]
        assert row[: len(own)].tolist() == own.tolist()
        assert not row[len(own) :].any()
    assert labels.tolist() == data.labels[[3, 5]].tolist()


@pytest.mark.parametrize("p", [1.1, 2.0, 3.0])
def test_it_learns_what_one_word_says(p: float) -> None:
    data = pieces(200)
    lr = {1.1: 2e-3, 2.0: 1e-2, 3.0: 1e-3}[p]
    recipe = am.text.Recipe(p=p, lr=lr, batch=20, epochs=60, stop=0.97)
    run = am.text.train_text(data, data, shape(data), recipe)
    assert run.best > 0.9
    assert run.history[0]["loss"] > run.history[-1]["loss"]


def test_a_batch_in_parts_is_the_whole_batch() -> None:
    data = pieces()
    still = am.text.Shape(len(data.vocabulary), **SMALL, dropout=0.0)
    runs = [
        am.text.train_text(
            data, data, still, am.text.Recipe(p=2.0, lr=1e-2, batch=16, epochs=2, parts=k)
        )
        for k in (1, 4)
    ]
    for one, four in zip(*(run.model.parameters() for run in runs), strict=True):
        torch.testing.assert_close(one, four, rtol=1e-4, atol=1e-5)


def test_dropout_is_in_attention_and_in_training_only() -> None:
    block = Block(am.text.Shape(10, **SMALL, dropout=0.5))
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng():
        assert not torch.equal(block.attention(x, None), block.attention(x, None))
    block.eval()
    assert torch.equal(block(x, None), block(x, None))


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    data = pieces()
    recipe = am.text.Recipe(p=1.5, lr=1e-3, batch=20, epochs=4, stop=2.0)
    whole = am.text.train_text(data, data, shape(data), recipe)
    first = am.text.Recipe(p=1.5, lr=1e-3, batch=20, epochs=2, stop=2.0)
    am.text.train_text(data, data, shape(data), first, out=tmp_path)
    later = am.text.train_text(data, data, shape(data), recipe, out=tmp_path)
    for own, other in zip(whole.history, later.history, strict=True):
        assert (own["loss"], own["test"]) == (other["loss"], other["test"])
    for own_w, other_w in zip(whole.model.parameters(), later.model.parameters(), strict=True):
        assert torch.equal(own_w, other_w)
    assert json.loads((tmp_path / "run.json").read_text())["epochs"] == 4


def test_another_recipe_does_not_go_on(tmp_path: Path) -> None:
    data = pieces(20)
    am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1), out=tmp_path)
    with pytest.raises(am.InputError, match="a run with another lr, p; needs an empty folder"):
        am.text.train_text(
            data, data, shape(data), am.text.Recipe(p=2.0, lr=1.0, epochs=1), out=tmp_path
        )
    other = pieces(30).part(np.arange(20))
    with pytest.raises(am.InputError, match="a run with another corpus"):
        am.text.train_text(other, other, shape(data), am.text.Recipe(epochs=2), out=tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(am.InputError, match=r"needs a whole \.safetensors file"):
        am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1), out=tmp_path)


def test_global_randomness_is_left_alone() -> None:
    data = pieces(20)
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1))
    assert torch.equal(torch.rand(3), wanted)


def test_tensors_are_in_the_safetensors_format(tmp_path: Path) -> None:
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor([True, False]),
        "c": torch.ones(2, dtype=torch.bfloat16),
    }
    path = write_tensors(tmp_path / "x.safetensors", tensors, {"note": "ü"})
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size % 8 == 0
    header = json.loads(data[8 : 8 + size])
    assert header["a"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    found, notes = read_tensors(path)
    assert notes == {"note": "ü"}
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor)
    path.write_bytes(data[:-1])
    with pytest.raises(am.InputError, match="cut short"):
        read_tensors(path)


def test_analyses_of_a_model() -> None:
    data = pieces(20)
    model = am.text.TextClassifier(shape(data)).eval()
    edges = np.linspace(0.0, 1.0, 11)
    found = sparsity(model, edges)
    assert set(found) == {"W_Q", "W_K", "W_V"}
    assert found["W_Q"]["all"] == sum(found["W_Q"]["counts"]) == 2 * 16 * 16
    shares = attention_shares(model, data)
    assert [len(s) for s in shares] == (data.lengths - 2).tolist()
    assert all(s.sum() == pytest.approx(1.0) for s in shares)
    share, rank = pivotal_shares([np.array([0.2, 0.5, 0.3])], [["a", "b", "c"]], ["c"])
    assert (share.tolist(), rank.tolist()) == ([0.3], [2])


def test_the_fused_update_asks_for_a_gpu() -> None:
    w = torch.nn.Parameter(torch.ones(4))
    w.grad = torch.ones(4)
    assert not fits(w, w.grad)
    assert can_fuse() == torch.cuda.is_available()
    with pytest.raises(am.InputError, match=r"fused: got True with torch\.float32 on cpu"):
        am.MirrorDescent([w], p=1.5, fused=True).step()


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


def test_texts_must_fit(tmp_path: Path) -> None:
    data = pieces(20)
    with pytest.raises(am.InputError, match="length: got 8 for texts of"):
        am.text.train_text(
            data, data, am.text.Shape(len(data.vocabulary), **{**SMALL, "length": 8})
        )
    with pytest.raises(am.InputError, match="epochs: got 0"):
        am.text.Recipe(epochs=0)


def table(path: Path, n: int = 60) -> Path:
    own = reviews(n)
    lines = [f"{text},{y}" for text, y in zip(own.texts, own.labels, strict=True)]
    path.write_text("\n".join(["text,label", *lines]))
    return path


FLAGS = ["--layers", "1", "--heads", "2", "--width", "16", "--hidden", "16", "--batch", "10",
         "--length", "32", "--device", "cpu"]  # fmt: skip


def test_train_text_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = table(tmp_path / "data.csv")
    words = ("train-text", file, *FLAGS, "--epochs", "2", "--out", tmp_path / "run")
    code, out, err = command(capsys, *words)
    assert (code, err) == (0, "")
    assert "48 texts to train and 12 to test" in out.replace("\n", " ")
    page = tmp_path / "page.html"
    code, out, _ = command(capsys, *words, "--html", page, "--json")
    record = json.loads(out)
    assert record["html"] == str(page)
    text = page.read_text()
    assert "Attention in texts of class 1" in text
    assert text.count('<p class="coloured">') == 7  # all three of class 0
    assert (record["epochs"], record["train"], record["test"]) == (2, 48, 12)
    code, _, err = command(capsys, "train-text", file, "--device", "nonsense")
    assert (code, "--device: got 'nonsense'" in err) == (2, True)
    code, _, err = command(capsys, "train-text", file, "--test-share", "2")
    assert (code, "--test-share: got 2" in err) == (2, True)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    """kill −9 at some epoch, start again: the history is that of a run that was left alone."""
    file = table(tmp_path / "data.csv", 200)
    words = [sys.executable, "-m", "attnmargin", "train-text", str(file), *FLAGS, "--epochs", "60",
             "--stop", "2", "--json"]  # fmt: skip
    process = subprocess.Popen([*words, "--out", tmp_path / "killed"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (tmp_path / "killed" / "run.json").exists():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert json.loads((tmp_path / "killed" / "run.json").read_text())["epochs"] < 60
    ends = []
    for name in ("killed", "whole"):
        done = subprocess.run([*words, "--out", tmp_path / name], capture_output=True, check=True)
        ends.append(json.loads(done.stdout)["history"])
    assert [(h["loss"], h["test"]) for h in ends[0]] == [(h["loss"], h["test"]) for h in ends[1]]
