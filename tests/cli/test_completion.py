"""Completion in shells: the scripts, and the answers to what is typed."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.commands import command

Capture = pytest.CaptureFixture[str]
_PROGRAM = "import sys; sys.argv = ['attnmargin']; from attnmargin.cli.start import start; start()"
_HEAVY = "; print(sorted({'torch', 'numpy'} & set(sys.modules)), file=sys.stderr)"


def answers(capsys: Capture, monkeypatch: pytest.MonkeyPatch, typed: str) -> list[str]:
    """Return the answers to a line whose last word is being typed, as bash reads them."""
    monkeypatch.setenv("_ATTNMARGIN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    code, out, err = command(capsys)
    assert (code, err) == (0, "")
    return out.split()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("attnmargin so", ["plain,solve"]),
     ("attnmargin t", ["plain,tokens", "plain,train", "plain,train-text"]),
     ("attnmargin solve --sel", ["plain,--select"]),
     ("attnmargin solve d", ["file,d"]),
     ("attnmargin verify ", ["file,"]),
     ("attnmargin solve x --out ", ["file,"]),
     ("attnmargin solve x --norm s", ["plain,spectral", "plain,sum"]),
     ("attnmargin margins x --norm n", ["plain,nuc"]),
     ("attnmargin solve x --select o", ["plain,opt"]),
     ("attnmargin solve x --select my", ["file,my"]),
     ("attnmargin train x --parameter ", ["plain,W", "plain,KQ", "plain,vW"]),
     ("attnmargin train x --parameter v", ["plain,vW"]),
     ("attnmargin predict x --start z", ["plain,zero"]),
     ("attnmargin predict x --start W", ["file,W"]),
     ("attnmargin heads m", ["plain,minilm"]),
     ("attnmargin heads minilm x --want ", ["plain,previous", "plain,same", "plain,next"]),
     ("attnmargin demo --out ", ["file,"]),
     ("attnmargin completion f", ["plain,fish"])],
)  # fmt: skip
def test_what_is_typed_is_completed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, typed: str, expected: list[str]
) -> None:
    assert answers(capsys, monkeypatch, typed) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_it_understands(capsys: Capture, shell: str) -> None:
    code, out, err = command(capsys, "completion", shell)
    assert (code, err) == (0, "")
    assert f"_ATTNMARGIN_COMPLETE={shell}_complete" in out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=out, text=True, check=True)


def test_other_shells_are_refused(capsys: Capture) -> None:
    code, _, err = command(capsys, "completion", "csh")
    assert (code, err) == (2, "attnmargin: SHELL: got 'csh'; needs one of bash, zsh, fish\n")


def test_completion_imports_nothing_heavy() -> None:
    code = _PROGRAM.replace("start()", "\ntry:\n    start()\nfinally:\n    pass" + _HEAVY)
    asked = {"_ATTNMARGIN_COMPLETE": "bash_complete", "COMP_WORDS": "attnmargin s",
             "COMP_CWORD": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | asked
    )
    assert (done.stdout.split(), done.stderr) == (["plain,solve", "plain,sweep"], "[]\n")
