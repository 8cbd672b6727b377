"""Workers for tests that start in tenths of a second, where the tests' subject is not the worker's own start.

A worker imports torch and warms three processes up, eight seconds of work, of which hundreds of tests would need their
own. Here ``main.py`` is the worker's main with one difference: its zygotes are forked from others that are warm already
(``warm.py``), one of each role for all of a session's tests. Whatever else there is to a worker is as always, and
``tests/confinement``, ``tests/worker/test_worker_protocol.py`` and ``test_unmarked_process.py`` start theirs as a user does.

``cli.py`` is the command line, the language server included, with such workers.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

#: the environment variable with the folder in which the warm processes listen
PLACE = "KERNEL_LSP_TESTS_NURSERY"

_HERE = Path(__file__).resolve().parent
WORKER_MAIN = _HERE / "main.py"
CLI = [sys.executable, str(_HERE / "cli.py")]


def begin() -> None:
    """Make the folder, for this process and those that it starts. The second worker that wants them starts the rest, under pytest-xdist the first."""
    if sys.platform == "linux" and PLACE not in os.environ:
        os.environ[PLACE] = tempfile.mkdtemp()
        Path(os.environ[PLACE], "owner").write_text(str(os.getpid()))


def end() -> None:
    """Remove the folder, in the process that made it; the warm processes end when that does."""
    place = os.environ.get(PLACE)
    if place is not None and Path(place, "owner").read_text() == str(os.getpid()):
        del os.environ[PLACE]
        shutil.rmtree(place, ignore_errors=True)
