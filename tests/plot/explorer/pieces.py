"""Ask the explorer's modules in node."""

import atexit
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import attnmargin.plot

NODE = shutil.which("node")
MODULES = Path(attnmargin.plot.__file__).parent / "explorer" / "modules"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


@cache
def _process() -> subprocess.Popen[str]:
    """Start ``answer_pieces.mjs``, which answers until the tests end."""
    driver = Path(__file__).with_name("answer_pieces.mjs")
    command = [str(NODE), "--no-warnings", str(driver), str(MODULES)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")
    atexit.register(process.communicate)
    return process


def ask(*questions: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers of ``answer_pieces.mjs``; those that fail are ``{"error": sentence}``."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(questions) + "\n")
    process.stdin.flush()
    return [found.get("answer", found) for found in json.loads(process.stdout.readline())]


def ask_one(name: str, **question: Any) -> Any:
    """Return one answer."""
    return ask((name, question))[0]
