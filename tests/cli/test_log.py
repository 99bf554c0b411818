"""Logs: what stands in them, that they are on disk at once, and what they never overwrite."""

import re
import time
import warnings
from pathlib import Path

import pytest

from attnmargin.base.errors import InputError
from attnmargin.cli import log
from attnmargin.cli.console import named_progress_bar
from attnmargin.cli.log import note, warn, with_log
from attnmargin.cli.main import cli
from tests.commands import command

Capture = pytest.CaptureFixture[str]
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} (INFO|WARNING|ERROR) ")
LONG = ("predict", "solve", "train", "train-text", "tokens", "heads", "reproduce", "sweep")


def lines(path: Path) -> list[str]:
    """The lines of a log, without their times."""
    found = path.read_text().splitlines()
    assert all(LINE.match(line) for line in found)
    return [line.split(" ", 1)[1] for line in found]


@pytest.mark.parametrize("name", LONG)
def test_every_long_command_can_log(name: str) -> None:
    assert any("--log" in param.opts for param in cli.commands[name].params)


def test_a_log_tells_how_a_command_began_went_on_and_ended(
    capsys: Capture, data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.log"
    words = ["train", data_file, "--steps", "500", "--log", path]
    code, _, err = command(capsys, *words)
    assert (code, err) == (0, "")
    first, *middle, last = lines(path)
    assert f"train {data_file} --steps 500 --log {path} (python 3." in first
    assert "torch " in first
    assert middle[0].startswith("INFO training: 0 of 500 steps")
    assert middle[-1].startswith("INFO training: 500 of 500 steps, ")
    assert re.fullmatch(r"INFO ended with status 0 after \d+\.\d seconds", last)
    before = path.read_bytes()
    command(capsys, *words)
    assert path.read_bytes().startswith(before)
    assert len(lines(path)) == 2 * (len(middle) + 2)


def test_an_error_ends_a_log_with_its_sentence(
    capsys: Capture, data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.log"
    code, _, err = command(capsys, "train", data_file, "--width", "3", "--log", path)
    error, last = lines(path)[-2:]
    assert code == 2
    assert error.startswith("ERROR --width: got 3 with parameter 'W'")
    assert error.removeprefix("ERROR ") in err
    assert last.startswith("INFO ended with status 2 after ")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [(["--log", "FILE"], "--log: got FILE, which is not a log; needs a new file, or a log"),
     (["--log", "OUT", "--out", "OUT"],
      "--log: got OUT, which is --out too; needs a file of its own"),
     (["--log", "FOLDER"],
      "--log: got FOLDER, which is not a regular file; needs the name of a file"),
     (["--log", "FOLDER/none/x"],
      "--log: got FOLDER/none/x, whose folder does not exist; needs an existing folder")],
)  # fmt: skip
def test_a_log_is_a_file_of_its_own(
    capsys: Capture, data_file: Path, tmp_path: Path, more: list[str], sentence: str
) -> None:
    places = {"FILE": str(data_file), "OUT": str(tmp_path / "out"), "FOLDER": str(tmp_path)}

    def spelled(text: str) -> str:
        return re.sub("|".join(places), lambda found: places[found[0]], text)

    before = data_file.read_bytes()
    code, out, err = command(capsys, "train", data_file, *map(spelled, more))
    assert (code, out, err) == (2, "", f"attnmargin: {spelled(sentence)}\n")
    assert data_file.read_bytes() == before


def test_a_log_is_not_the_folder_of_results(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "new"
    code, _, err = command(capsys, "reproduce", "A:fig7", "--out", place, "--log", place)
    assert (code, "--log: got" in err, "which is --out too" in err) == (2, True, True)


def test_lines_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    seen = []

    def work() -> int:
        for word in ("one", "two"):
            note(word)
            seen.append(lines(path)[-1])
        return 1

    assert with_log(path, work) == 1
    assert seen == ["INFO one", "INFO two"]
    assert lines(path)[-1].startswith("INFO ended with status 1 ")


def test_warnings_are_logged_and_shown(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, shown = tmp_path / "run.log", []

    def work() -> None:
        warnings.warn("odd data", stacklevel=1)
        warn("A:fig9 is left out")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_: shown.append(str(message)))
        with_log(path, work)
    assert lines(path)[1:3] == ["WARNING UserWarning: odd data", "WARNING A:fig9 is left out"]
    assert shown == ["odd data"]
    assert capsys.readouterr().err == "A:fig9 is left out\n"


def test_an_unexpected_error_is_logged_with_its_traceback(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with pytest.raises(ZeroDivisionError):
        with_log(path, lambda: 1 // 0)
    text = path.read_text()
    assert "ERROR integer division or modulo by zero\n    Traceback" in text
    assert "ended with status 1 after" in text


def test_ctrl_c_ends_a_log(tmp_path: Path) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_log(tmp_path / "run.log", work)
    assert lines(tmp_path / "run.log")[-1].startswith("INFO stopped with status 130 after ")


def test_progress_is_logged_by_time_and_by_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, now = tmp_path / "run.log", [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def work() -> None:
        with named_progress_bar() as tell:
            for k in range(1001):  # quick work: every 5 %
                tell("quick", k, 1000)
            for k in range(121):  # slow work: every 30 s
                now[0] += 1.0
                tell("slow", k, 100_000)

    with_log(path, work)
    found = [line.split()[1] for line in lines(path)]
    assert found.count("quick:") == 21
    assert found.count("slow:") == 4


def test_without_a_log_nothing_is_written(capsys: Capture, tmp_path: Path) -> None:
    assert with_log(None, lambda: note("nobody reads this")) is None
    assert not log.is_open()
    assert capsys.readouterr() == ("", "")


def test_a_log_that_cannot_be_written_does_not_stop_the_work(capsys: Capture) -> None:
    assert with_log(Path("/dev/full"), lambda: 7) == 7
    err = capsys.readouterr().err
    assert err == "attnmargin: no more log: [Errno 28] No space left on device\n"


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log: got .*; needs a file to write"):
        with_log(tmp_path / "none" / "run.log", lambda: None)
