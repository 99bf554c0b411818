"""Files of tensors."""

import json
from pathlib import Path

import pytest
import torch

import attnmargin as am
from attnmargin.base.safetensors import read_tensors, write_tensors


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
