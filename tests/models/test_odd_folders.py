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
