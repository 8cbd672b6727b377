"""A program in a process of its own, run with TRITON_INTERPRET=1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed(program: str, *arguments: str) -> str:
    """What the program prints; it must end well."""
    environment = dict(os.environ, TRITON_INTERPRET="1", PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
