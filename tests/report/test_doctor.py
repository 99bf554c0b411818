"""What the doctor finds: here, where things are missing, and where they are broken."""

from pathlib import Path

import pytest
import torch

from attnmargin.margin.builders import token_problem
from attnmargin.report import doctor
from attnmargin.version import VERSION


def test_a_sound_machine_passes() -> None:
    record = doctor.doctor_record()
    assert record["versions"]["attnmargin"] == VERSION
    assert record["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert record["threads"]["torch"] == torch.get_num_threads()
    assert record["check"]["status"] == "optimal"
    assert record["check"]["gap"] <= 1e-12
    assert record["kernels"]["writable"]
    assert record["kernels"]["error"] is None
    assert {own["kernel"]: own["cached"] for own in record["kernels"]["kernels"]}[
        "Frobenius solver"
    ]


def test_all_kernels_are_looked_at() -> None:
    names = doctor.kernel_modules()
    assert {"attnmargin.solvers.frobenius.active_set", "attnmargin.training.kernel"} < set(names)
    assert "attnmargin.base.kernels" not in names  # which defines them, and holds none


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "can_compile", lambda: False)
    assert doctor.doctor_record()["kernels"]["kernels"] == []


def _broken(*_: object) -> None:
    raise ImportError("numba needs another numpy")


def test_a_broken_numba_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "import_module", _broken)
    monkeypatch.setattr(doctor, "solve", _broken)
    record = doctor.doctor_record()
    assert record["kernels"]["error"] == "ImportError: numba needs another numpy"
    assert (record["check"]["status"], record["holds"]) == ("failed", False)
    assert record["check"]["error"] == "ImportError: numba needs another numpy"


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "token_problem", lambda X, z, s: token_problem([[[2, 0], [0, 1]]], z, s)
    )
    record = doctor.doctor_record()
    assert (record["check"]["status"], record["holds"]) == ("optimal", False)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert doctor._is_writable(tmp_path / "new" / "folder")
    assert not doctor._is_writable(tmp_path / "file")
