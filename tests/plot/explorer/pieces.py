"""Ask the explorer's modules in node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import attnmargin.plot

NODE = shutil.which("node")
MODULES = Path(attnmargin.plot.__file__).parent / "explorer" / "modules"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def ask(*questions: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers of ``answer_pieces.mjs``; those that fail are ``{"error": sentence}``."""
    driver = Path(__file__).with_name("answer_pieces.mjs")
    command = [str(NODE), "--no-warnings", str(driver), str(MODULES)]
    text = json.dumps(questions)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [found.get("answer", found) for found in json.loads(done.stdout)]


def ask_one(name: str, **question: Any) -> Any:
    """Return one answer."""
    return ask((name, question))[0]
