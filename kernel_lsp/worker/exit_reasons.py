"""Why a candidate's process ended: what it did itself, or what was done to it and what for."""

from __future__ import annotations

import contextlib
import os
import shutil

from kernel_lsp import child_processes

#: the folder in the worker's scratch folder where it is noted what was ended, and why
FOLDER = "ended"


def for_want_of_memory() -> int:
    """How many processes the system has ended so far because memory ran out."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def note(scratch: str, pid: int, why: str) -> None:
    """Keep why a process is ended. ``scratch``: the worker's own folder."""
    folder = os.path.join(scratch, FOLDER)
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, str(pid)), "w") as file:
            file.write(why)


def forget(scratch: str) -> None:
    """Remove the notes: another process may get the number."""
    shutil.rmtree(os.path.join(scratch, FOLDER), ignore_errors=True)


def describe(status: int, pid: int, scratch: str, before: int) -> str:
    """A wait status in words, with the reason where it was killed. ``before``: ``for_want_of_memory`` when it began.

    ``scratch``: the request's folder, in the worker's own.
    """
    how = child_processes.describe(status)
    if how != "killed by SIGKILL":
        return how
    with contextlib.suppress(OSError), open(os.path.join(os.path.dirname(scratch), FOLDER, str(pid))) as file:
        return f"ended since {file.read()}"
    return with_want_of_memory(how, before)


def with_want_of_memory(how: str, before: int) -> str:
    """The words for how a process ended, and whether the system ended one since ``before`` because memory ran out."""
    return f"{how} when memory ran out" if how == "killed by SIGKILL" and for_want_of_memory() > before else how
