"""Runs the user's command with the recording injected, and passes signals on to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_lsp.errors import CommandNotStarted

VARIABLE = "KERNEL_LSP_RECORD"  # as in hook/starting.py
_INJECTED = Path(__file__).resolve().parent / "injected"


def environment(folder: Path, root: Path, classes: Sequence[str]) -> dict[str, str]:
    """The environment in which each Python below the command records into ``folder``."""
    config = {"folder": str(folder), "root": os.path.realpath(root), "classes": list(classes)}
    paths = [str(_INJECTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: json.dumps(config)}


def run(command: Sequence[str], given: dict[str, str], quiet: bool = False) -> int:
    """Run the command to its end; returns its exit status as a shell has it (128 + the signal that ended it).

    Ctrl-C reaches the command from the terminal; SIGTERM and SIGHUP are passed on. ``quiet``: what it prints goes to standard error.

    Raises:
        CommandNotStarted: the system cannot start it.
    """
    try:
        process = subprocess.Popen(command, env=given, stdout=sys.stderr if quiet else None)
    except OSError as error:
        raise CommandNotStarted(command=command[0], detail=error.strerror or error) from None
    with _passing_on(process):
        status = process.wait()
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send signals for this process on to the command, which decides when to end."""

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    def interrupted(number: int, frame: object) -> None:
        if not _from_terminal():
            pass_on(number, frame)

    handlers = {signal.SIGINT: interrupted, signal.SIGTERM: pass_on}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = pass_on
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _from_terminal() -> bool:
    """Whether Ctrl-C reaches the command without us: it is in the foreground of a terminal, as this process is."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except (OSError, AttributeError):
        return os.name == "nt"
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def script_of(command: Sequence[str]) -> str:
    """What a person calls the program: the first ``.py`` file, or the module after ``-m``, else the command."""
    for i, word in enumerate(command):
        if word == "-m" and i + 1 < len(command) and not command[i + 1].startswith("torch.distributed"):
            return command[i + 1]
        if word.endswith(".py"):
            return os.path.basename(word)
    return os.path.basename(command[0])
