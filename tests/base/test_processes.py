"""Processes that end with another one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# A parent whose child runs a program of its own.
PARENT = """
import os, subprocess, sys, time
child = "import os, subprocess, sys; from attnmargin.base.processes import end_with; "
child += f"end_with({os.getpid()}); "
child += "subprocess.run(['sh', '-c', 'echo $$ > $0/ready; mv $0/ready $0/program; sleep 300', "
child += f"{sys.argv[1]!r}])"
subprocess.run([sys.executable, "-c", child])
"""


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_process_and_its_programs_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    deadline, ready = time.monotonic() + 60, tmp_path / "program"
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    program = int(ready.read_text())
    assert lives(program)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    while lives(program) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not lives(program)
