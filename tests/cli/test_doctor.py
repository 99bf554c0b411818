"""attnmargin doctor: what it prints, and its exit codes."""

import json

import pytest

from attnmargin.report import doctor
from tests.commands import command

Capture = pytest.CaptureFixture[str]


def test_the_doctor_says_that_all_is_well(capsys: Capture) -> None:
    code, out, err = command(capsys, "doctor")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("all is well.")
    for words in ("attnmargin  ", "Python  ", "threads  ", "GPU  ", "kernels  ", "minilm  "):
        assert f"\n{words}" in f"\n{out}", words


def test_the_record_is_json(capsys: Capture) -> None:
    code, out, _ = command(capsys, "doctor", "--json")
    record = json.loads(out)
    assert (code, record["holds"]) == (0, True)
    assert set(record) == {"versions", "machine", "threads", "gpu", "kernels", "extras", "check",
                           "holds"}  # fmt: skip


def test_what_is_missing_or_broken_is_said(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no BLAS")

    monkeypatch.setattr(doctor, "solve", fail)
    monkeypatch.setattr(doctor, "can_compile", lambda: False)
    monkeypatch.setattr(doctor, "lacking", lambda extra: ["ray"] if extra == "ray" else [])
    code, out, _ = command(capsys, "doctor")
    assert code == 1
    assert 'lacks ray: pip install "attnmargin[ray]"' in out
    assert 'numba is missing, so that small problems take longer: pip install "numba"' in out
    assert out.rstrip().endswith("not solved (RuntimeError: no BLAS): something is broken.")


def test_kernels_that_cannot_be_kept_are_said(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_is_writable", lambda _: False)
    code, out, _ = command(capsys, "doctor")
    assert code == 0
    words = "every run compiles: set NUMBA_CACHE_DIR to a folder to write to"
    assert words in " ".join(out.split())
