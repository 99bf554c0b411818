"""The command train-text."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import command
from tests.texts import reviews


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
    assert text.count('<p class="words">') == 7  # all three of class 0
    assert (record["epochs"], record["train"], record["test"]) == (2, 48, 12)
    code, out, _ = command(capsys, "train-text", file, *FLAGS, "--epochs", "1", "--positive", "0",
                           "--json")  # fmt: skip
    assert (code, json.loads(out)["classes"]) == (0, ["1", "0"])
    code, _, err = command(capsys, "train-text", file, "--device", "nonsense")
    assert (code, "--device: got 'nonsense'" in err) == (2, True)
    code, _, err = command(capsys, "train-text", file, "--test-share", "2")
    assert (code, "--test-share: got 2" in err) == (2, True)


def test_a_killed_run_goes_on_to_the_same_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """kill −9 at some epoch, start again: the history is that of a run that was left alone."""
    file = table(tmp_path / "data.csv", 200)
    words = ["train-text", str(file), *FLAGS, "--epochs", "20", "--stop", "2", "--json"]
    program = [sys.executable, "-m", "attnmargin", *words, "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (tmp_path / "killed" / "run.json").exists():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert json.loads((tmp_path / "killed" / "run.json").read_text())["epochs"] < 20
    ends = []
    for name in ("killed", "whole"):
        code, out, _ = command(capsys, *words, "--out", tmp_path / name)
        assert code == 0
        ends.append(json.loads(out)["history"])
    assert [(h["loss"], h["test"]) for h in ends[0]] == [(h["loss"], h["test"]) for h in ends[1]]
