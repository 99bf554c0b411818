"""Folders of models that are damaged or hostile: one sentence each, and no code of theirs runs."""

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import attnmargin as am
from tests.models.instances import small_model

TEXTS = ["a b c", "d e"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a tokenizer of twelve words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("model")
    words = {word: k for k, word in enumerate(["[PAD]", "[UNK]", *"abcdefghij"])}
    plain = Tokenizer(models.WordLevel(words, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]").save_pretrained(path)
    small_model("bert").save_pretrained(path)
    return path


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def settings(folder: Path, name: str = "config.json", **changes: Any) -> None:
    record = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(record | changes))


def pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


def pickled(folder: Path) -> None:
    """Only weights that the unpickler would read, and that run a program when it does."""
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Run(folder / "ran")))


class Run:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, int]]:
        return os.open, (str(self.path), os.O_CREAT)


def code(folder: Path) -> None:
    """A model of a class of its own, whose module creates a file when it is imported."""
    text = f"open({str(folder / 'ran')!r}, 'w')\nclass M: pass\nclass C: pass\n"
    (folder / "own.py").write_text(text)
    classes = {"AutoConfig": "own.C", "AutoModel": "own.M", "AutoTokenizer": ["own.M", "own.M"]}
    settings(folder, model_type="own", auto_map=classes)
    settings(folder, "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.M", "own.M"]})


def length(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 60) + path.read_bytes()[8:])


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": pipe,
    "pickles": pickled,
    "code": code,
    "a header of 2^60 bytes": length,
    "wide": lambda folder: settings(folder, hidden_size=1 << 20),
    "a huge vocabulary": lambda folder: settings(folder, vocab_size=1 << 40),
    "deep": lambda folder: settings(folder, num_hidden_layers=10**9),
    "no width": lambda folder: settings(folder, hidden_size=0),
    "words for numbers": lambda folder: settings(folder, num_hidden_layers="two"),
    "no list": lambda folder: (folder / "config.json").write_text("null"),
    "nested": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "nested tokens": lambda folder: (folder / "tokenizer.json").write_text("[" * 100_000),
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "odd lengths": lambda folder: settings(folder, "tokenizer_config.json", model_max_length="x"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_folders(name: str, folder: Path) -> None:
    ODD[name](folder)
    with pytest.raises(am.InputError) as caught:
        am.models.read_heads(folder, TEXTS)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500
    assert not (folder / "ran").exists()


def test_a_whole_folder_is_read(folder: Path) -> None:
    assert len(am.models.read_heads(folder, TEXTS)) == 8


class PanicException(BaseException):
    """What Rust raises through Python; no subclass of Exception."""


def splits(error: BaseException) -> Callable[..., Any]:
    def tokenizer(text: str, **options: Any) -> Any:
        raise error

    return tokenizer


def test_tokenizers_that_panic() -> None:
    for error in (PanicException("stride < max_len"), OverflowError("too big"), KeyError("ids")):
        with pytest.raises(am.InputError, match=r"one that fails .*; needs one that splits texts"):
            am.models.read_heads(small_model("bert"), ["a"], splits(error))
    with pytest.raises(KeyboardInterrupt):
        am.models.read_heads(small_model("bert"), ["a"], splits(KeyboardInterrupt()))


def test_models_that_fail_only_when_they_run() -> None:
    model = small_model("gpt2")
    model.ln_f = torch.nn.LayerNorm(7)  # a RuntimeError within
    with pytest.raises(am.InputError, match=r"a GPT2Model that fails on these texts .*shape"):
        am.models.read_heads(model, [[1, 2, 3]])
    model = small_model("gpt2")
    model.config.vocab_size = 2**80  # an OverflowError where the ids become a tensor
    with pytest.raises(am.InputError, match=r"a GPT2Model that fails on these texts .*; needs"):
        am.models.read_heads(model, [[2**70]])
