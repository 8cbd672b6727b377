"""Processes that run a program which needs torch, forked from one that has imported it: importing it takes seconds."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import sys
from pathlib import Path

import torch  # noqa: F401 (for the programs)

from kernel_lsp.confinement import descriptors  # noqa: F401
from kernel_lsp.worker import gpu_lock  # noqa: F401

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__])


class Forked:
    """A process in a session of its own that runs ``program`` as ``python -c PROGRAM FOLDER`` does; lines go in and out."""

    def __init__(self, program: str, folder: Path) -> None:
        mine, its = _FORKING.Pipe()
        self.process = _FORKING.Process(target=_run, args=(program, str(folder), its))
        self.process.start()
        its.close()
        self._input, self._output = os.fdopen(os.dup(mine.fileno()), "w"), os.fdopen(os.dup(mine.fileno()))
        mine.close()

    def write(self, line: str) -> None:
        self._input.write(f"{line}\n")
        self._input.flush()

    def line(self) -> str:
        return self._output.readline().removesuffix("\n")

    def ended(self) -> int | None:
        """The exit status of a process that has ended or ends soon."""
        self.process.join(5)
        return self.process.exitcode

    def close(self) -> None:
        self._input.close()
        self._output.close()


def _run(program: str, folder: str, link: multiprocessing.connection.Connection) -> None:
    os.setsid()
    sys.argv = ["-c", folder]
    sys.stdin, sys.stdout = os.fdopen(os.dup(link.fileno())), os.fdopen(os.dup(link.fileno()), "w")
    link.close()
    exec(program, {"__name__": "__main__"})
