"""A quick start, files that are never overwritten, and options that are never ignored."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import write_npz
from attnmargin.cli import main
from attnmargin.cli.start import start
from tests.commands import command

HEAVY = ("torch", "numpy", "numba", "scipy")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return am.random_data(3, 3, 4, name="manners").save(tmp_path / "data.npz")


@pytest.mark.parametrize(
    "words",
    [["--help"], [], ["predict", "--help"], ["predict", "none.npz"], ["solve", "x", "--norm", "y"],
     ["train", "none.npz", "--lr", "0"], ["predict", "--bogus"]],
)  # fmt: skip
def test_nothing_heavy_is_imported_before_the_arguments_are_right(words: list[str]) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['attnmargin', *{words!r}]\n"
        "from attnmargin.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_bare_command_prints_its_help(capsys: Capture) -> None:
    code, out, err = command(capsys)
    assert (code, err) == (0, "")
    assert "Commands:" in out
    assert "predict" in out


@pytest.mark.parametrize(
    ("words", "option"),
    [(["predict", "FILE", "--out", "FILE"], "--out"),
     (["predict", "FILE", "--html", "FILE"], "--html"),
     (["predict", "FILE", "--csv", "FILE"], "--csv"), (["solve", "FILE", "--out", "FILE"], "--out"),
     (["train", "FILE", "--out", "FILE"], "--out"), (["graph", "FILE", "--html", "FILE"], "--html"),
     (["tokens", "FILE", "--html", "FILE"], "--html"),
     (["train-text", "FILE", "--html", "FILE"], "--html")],
)  # fmt: skip
def test_no_command_overwrites_what_it_reads(
    capsys: Capture, data_file: Path, words: list[str], option: str
) -> None:
    before = data_file.read_bytes()
    code, out, err = command(capsys, *(data_file if w == "FILE" else w for w in words))
    assert (code, out) == (2, "")
    assert (
        err
        == f"attnmargin: {option}: got {data_file}, which is FILE too; needs a file of its own\n"
    )
    assert data_file.read_bytes() == before


def test_a_link_to_the_input_is_the_input(capsys: Capture, data_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.npz"
    link.symlink_to(data_file)
    code, _, err = command(capsys, "solve", data_file, "--out", link)
    assert (code, "which is FILE too" in err) == (2, True)


def test_two_outputs_need_two_files(capsys: Capture, data_file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    code, _, err = command(capsys, "predict", data_file, "--out", new, "--html", new)
    assert (code, "needs a file of its own" in err) == (2, True)
    assert not new.exists()


@pytest.mark.parametrize(
    ("place", "kind"),
    [(os.devnull, "which is not a regular file"), ("folder", "which is a folder"),
     ("none.npz", "which does not exist")],
)  # fmt: skip
def test_what_is_no_file_is_called_what_it_is(
    capsys: Capture, tmp_path: Path, place: str, kind: str
) -> None:
    (tmp_path / "folder").mkdir()
    code, _, err = command(capsys, "predict", tmp_path / place)
    assert (code, kind in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["train", "--width", "3"],
      "--width: got 3 with parameter 'W'; needs parameter 'KQ': it is the number of columns of K "
      "and Q"),
     (["train", "--lr", "0"],
      "--lr: got '0'; needs a positive number, or with --plain auto or polyak"),
     (["predict", "--p", "1e9"],
      "--p: got 1e+09; needs a power from 1.1 to 10, where solutions are exact"),
     (["train", "--penalty", "-1"],
      "--penalty: got -1; needs a finite number that is not negative")],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(
    capsys: Capture, data_file: Path, words: list[str], sentence: str
) -> None:
    code, out, err = command(capsys, words[0], data_file, *words[1:])
    assert (code, out, err) == (2, "", f"attnmargin: {sentence}\n")


def test_rates_by_name_work(capsys: Capture, data_file: Path) -> None:
    words = ["train", data_file, "--plain", "--lr", "auto", "--steps", "5", "--json"]
    code, out, _ = command(capsys, *words)
    assert (code, json.loads(out)["steps"]) == (0, 5)


def test_malformed_words_are_refused_without_a_page_too(capsys: Capture, tmp_path: Path) -> None:
    data = am.random_data(2, 3, 4, name="manners")
    fields = {"X": data.X, "z": data.z, "y": data.y, "v": data.v}
    file = write_npz(tmp_path / "words.npz", {**fields, "words": np.array([["a", "b"]])})  # type: ignore[dict-item]
    code, _, err = command(capsys, "predict", file)
    assert (code, "words: got shape (1, 2); needs one name per token, (2, 3)" in err) == (2, True)


def test_predict_speaks_in_words_and_checks_theorems_on_request(
    capsys: Capture, tmp_path: Path
) -> None:
    data = am.random_data(2, 2, 6, name="manners", min_gap=0.1)
    names = [["good", "film"], ["bad", "plot"]]
    file = data.save(tmp_path / "named.npz", names)
    code, out, _ = command(capsys, "predict", file)
    chosen = am.optimal_tokens(data).tolist()
    assert code == 0
    assert all(f"“{names[i][t]}”" in out for i, t in enumerate(chosen))
    assert "│ A: " not in out
    _, whole, _ = command(capsys, "predict", file, "--theorems")
    assert whole.count("│ A: ") + whole.count("│ B: ") > 30


def test_a_batch_ends_with_a_summary_and_a_table_on_request(
    capsys: Capture, tmp_path: Path
) -> None:
    file = am.random_data(2, 2, 6, trials=4, name="manners").save(tmp_path / "batch.npz")
    table = tmp_path / "table.csv"
    words = ["predict", file, "--verify", "--steps", "500", "--csv", table]
    code, out, _ = command(capsys, *words)
    record = json.loads(command(capsys, *words, "--json")[1])
    assert code == (0 if record["holds"] else 1)
    last = out.splitlines()[-2]
    assert f"training agrees with {record['agree']} of 4" in last
    assert all(f"{n} {verdict}" in last for verdict, n in record["verdicts"].items() if n)
    lines = table.read_text().splitlines()
    assert lines[0] == (
        "index,verdict,since,longest step,share,status,selection,best,margin,agrees,correlation"
    )
    assert len(lines) == 5


def test_a_stopped_run_says_how_to_go_on(tmp_path: Path) -> None:
    """Ctrl-C ends a run with checkpoints at once, and says that the same command goes on."""
    texts = "\n".join(f"{word} film {k % 7},{label}" for k in range(400)
                      for word, label in (("good", "pos"), ("bad", "neg")))  # fmt: skip
    (tmp_path / "texts.csv").write_text(f"text,label\n{texts}\n")
    words = ["tokens", str(tmp_path / "texts.csv"), "--least", "1", "--epochs", "100000", "--out",
             str(tmp_path / "run")]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "attnmargin", *words],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "model.safetensors").is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; run the same command again to continue from {tmp_path / 'run'}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["--help"], ["solve", "FILE"]])
def test_a_full_disk_behind_standard_output_gets_one_sentence(
    data_file: Path, words: list[str]
) -> None:
    program = [sys.executable, "-m", "attnmargin"]
    program += [str(data_file) if word == "FILE" else word for word in words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "attnmargin: No space left on device (standard output)\n"
    assert (done.returncode, done.stderr) == (2, said)


def lose_ctrl_c() -> None:
    main._interrupt_again(SimpleNamespace(exc_type=KeyboardInterrupt))
    time.sleep(1.0)


def test_ctrl_c_inside_of_a_callback_is_not_lost(capsys: Capture) -> None:
    """A callback from C cannot pass an exception on: it comes again, outside."""
    # A shell that runs the tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lose_ctrl_c()
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("package", ["click", "torch"])
def test_a_missing_package_that_everybody_needs_is_named(package: str) -> None:
    code = (
        "import sys; sys.modules["
        + repr(package)
        + "] = None; sys.argv = ['attnmargin', 'doctor']\n"
        "from attnmargin.cli.start import start; start()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    line = f'attnmargin: the package {package} is missing: pip install "{package}"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_ctrl_c_while_the_command_line_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "attnmargin.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "attnmargin.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as stopped:
        start()
    assert stopped.value.code == 130
