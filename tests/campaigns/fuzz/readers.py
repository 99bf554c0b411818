"""The readers under fuzz: valid files to begin with, mutations of them, and what reads them."""

import gzip
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, final

import numpy as np
import torch

import attnmargin as am
from tests.campaigns.fuzz.arrays import change_npz, change_tensors, npz
from tests.campaigns.fuzz.folders import change_folder, packed, read_folder, write_folder
from tests.campaigns.fuzz.tables import (
    change_jsonl,
    change_parquet,
    change_table,
    change_toml,
    parquet,
)

# Numbers in a file from which no command is run on it: that would be about speed.
MOST_NUMBERS = 400


@final
@dataclass(frozen=True)
class Reader:
    """How files of one kind are made, changed and read."""

    suffix: str  # of the file; empty for a folder
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[bytes, Random], bytes]
    read: Callable[[Path], Any]
    size: Callable[[Any], int] = lambda found: MOST_NUMBERS + 1
    commands: tuple[tuple[str, ...], ...] = ()  # on files that were read

    def write(self, data: bytes, folder: Path) -> Path:
        """Write a case into a folder."""
        if not self.suffix:
            write_folder(data, folder / "case")
            return folder / "case"
        path = folder / f"case{self.suffix}"
        path.write_bytes(data)
        return path


def _problems() -> list[bytes]:
    data = am.random_data(3, 3, 2, seed=1)
    one = {name: getattr(data, name).numpy() for name in ("X", "z", "y", "v")}
    mask = np.ones((3, 3), dtype=bool)
    mask[0, 2] = False
    words = np.array([["a", "b", "c"]] * 3)
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    rows = {name: value.numpy() for name, value in problem.arrays().items()}
    batch = am.random_data(2, 2, 2, 2, seed=2)
    several = {name: getattr(batch, name).numpy() for name in ("X", "z", "y", "v")}
    return [npz(own) for own in (one, one | {"mask": mask, "words": words}, rows, several)]


def _read_problem(path: Path) -> Any:
    from attnmargin.cli.inputs import read_data, read_problem, read_selection

    return _first(lambda: read_data(path, True)[0], lambda: read_problem(path, "opt"),
                  lambda: read_selection(path))  # fmt: skip


def _first(*readers: Callable[[], Any]) -> Any:
    """Call all readers of a file; return what the first returned that did not refuse it."""
    found: list[Any] = []
    for read in readers:
        try:
            found.append(read())
        except am.AttnMarginError as error:
            refused = error
    if not found:
        raise refused
    return found[0]


def _numbers(found: Any) -> int:
    if isinstance(found, am.AttentionData):
        return found.X.numel() + found.z.numel()
    return found.left.numel() if isinstance(found, am.MarginProblem) else MOST_NUMBERS + 1


def _solutions() -> list[bytes]:
    found = []
    for norm in ("fro", "nuc", 3.0):
        data = am.random_data(2, 3, 2, seed=3)
        problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        found.append(_written(".npz", am.solve(problem, norm).save))
    contradiction = am.margin_problem([[1.0], [-1.0]], [[1.0], [1.0]])
    return [*found, _written(".npz", am.solve(contradiction).save)]


def _written(suffix: str, save: Callable[[Path], object]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"x{suffix}")
        save(path)
        return path.read_bytes()


def _verify(path: Path) -> Any:
    from attnmargin.report.solutions import verification_record

    verification_record(path)
    return am.Solution.load(path).problem


_SEQUENCES = [
    b'{"tokens": ["a", "b"], "next": "a"}\n{"tokens": ["b", "c", "a"], "next": "c"}\n',
    b'{"tokens": [1, 2, 3], "next": 3}\n\n{"tokens": ["\xc3\xa9", "\\u00e9"], "next": 7}',
]


def _read_sequences(path: Path) -> Any:
    from attnmargin.models.files import read_pairs, read_texts

    for read in (read_texts, read_pairs):
        try:
            read(path)
        except am.AttnMarginError:
            continue
    return am.graphs.read_graphs(path)


_TABLES = [
    b"text,label\nfine,1\nbad,0\ngood film,1\n",
    b'text,label,split\n"a, ""b""",pos,train\n"c\nd",neg,test\n',
    b"text\tlabel\nfine\t1\nbad\t0\n",
    "text;label\nfür;1\nbad;0\n".encode("utf-16"),
    gzip.compress(b"text,label\nfine,1\nbad,0\n", mtime=0),
]


def _read_table(path: Path) -> Any:
    other = path.with_suffix(".tsv")
    other.write_bytes(path.read_bytes())
    return _first(lambda: am.text.read_corpus(path), lambda: am.text.read_corpus(other))


def _parquets() -> list[bytes]:
    rows: dict[str, Any] = {"text": ["fine", "bad"] * 5, "label": [1, 0] * 5}
    more = {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"}
    return [parquet(rows), parquet(rows, **more), parquet(rows | {"split": ["train", "test"] * 5})]


def _checkpoints() -> list[bytes]:
    from attnmargin.base.safetensors import write_tensors

    own = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True, False]),
           "c": torch.zeros(0, dtype=torch.int64)}  # fmt: skip
    run = '{"recipe": {"lr": 0.1, "epochs": 3}, "history": [{"loss": 1.0}], "data": "0f"}'
    return [_written(".safetensors", lambda path: write_tensors(path, own, {"run": run})),
            _written(".safetensors", lambda path: write_tensors(path, {}, {}))]  # fmt: skip


def _read_checkpoint(path: Path) -> Any:
    from attnmargin.base.safetensors import read_tensors
    from attnmargin.text.checkpoint import Checkpoint

    found = read_tensors(path)
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(path.read_bytes())
    own = {"recipe": {"lr": 0.1, "epochs": 3}, "data": "0f"}
    with suppress(am.AttnMarginError):
        Checkpoint.at(folder).load(own)
    return found


_SPECS = [
    b'compute = "train"\ntrials = 2\nseed = 0\nrecord = ["correlation"]\n\n[grid]\nn = 2\nT = 2\n'
    b'd = [2, 3]\nparameter = ["W", "KQ"]\nsteps = 3\n',
    b'command = "true --lr {lr} {seed}"\ntrials = 1\n[grid]\nlr = [0.1, 1e-3]\n',
    b'compute = "solve"\n[grid]\nfile = ["data.npz"]\nnorm = "fro"\n',
]


def _read_spec(path: Path) -> Any:
    from attnmargin.sweeps.spec import read_spec
    from attnmargin.sweeps.work import as_work, check_arguments

    am.random_data(2, 2, 2, seed=1).save(path.parent / "data.npz")
    found = read_spec(path)
    check_arguments(as_work(found.function, max(found.trials, 1), 0), found.points)
    return found


def _sweeps() -> list[bytes]:
    def broken(x: int) -> dict[str, Any]:
        if x == 2:
            raise ValueError("no")
        return {"value": x * 0.5, "word": "a"}

    with TemporaryDirectory() as folder:
        am.sweep(broken, {"x": [1, 2, 3]}, out=folder, jobs=1)
        return [packed(read_folder(Path(folder)))]


def _read_sweep(path: Path) -> Any:
    found = am.collect(path)
    found.summary()
    return found.failed, found.missing, found.table(), found.seconds()


def _models() -> list[bytes]:
    return [_model(family) for family in ("bert", "llama", "gpt2")]


def _model(family: str) -> bytes:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    sizes = {"vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 8, "max_position_embeddings": 16}  # fmt: skip
    config = transformers.AutoConfig.for_model(family, **sizes)
    words = ["[PAD]", "[UNK]", *"abcdefghij"]
    plain = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")
    with TemporaryDirectory() as folder:
        transformers.AutoModel.from_config(config).save_pretrained(folder)
        own.save_pretrained(folder)
        return packed(read_folder(Path(folder)))


def _read_model(path: Path) -> Any:
    return am.models.read_heads(path, ["a b c", "d e"], length=8)


READERS = {
    "npz": Reader(
        ".npz", _problems, change_npz, _read_problem, _numbers,
        (("solve", "FILE", "--json"), ("predict", "FILE", "--json", "--steps", "100"),
         ("train", "FILE", "--json", "--steps", "20"), ("solve", "FILE"), ("predict", "FILE")),
    ),
    "solutions": Reader(
        ".npz", _solutions, change_npz, _verify, _numbers,
        (("verify", "FILE"), ("verify", "FILE", "--exact", "--json"), ("solve", "FILE", "--json")),
    ),
    "sequences": Reader(
        ".jsonl", lambda: _SEQUENCES, change_jsonl, _read_sequences, lambda found: 0,
        (("graph", "FILE", "--json"), ("graph", "FILE", "--next", "a b")),
    ),
    "tables": Reader(
        ".csv", lambda: _TABLES, change_table, _read_table, lambda found: 0,
        (("tokens", "FILE", "--statistics-only", "--least", "1", "--json"),),
    ),
    "parquet": Reader(".parquet", _parquets, change_parquet, am.text.read_corpus),
    "safetensors": Reader(".safetensors", _checkpoints, change_tensors, _read_checkpoint),
    "specs": Reader(".toml", lambda: _SPECS, change_toml, _read_spec),
    "sweeps": Reader("", _sweeps, change_folder, _read_sweep),
    "models": Reader("", _models, change_folder, _read_model),
}  # fmt: skip
