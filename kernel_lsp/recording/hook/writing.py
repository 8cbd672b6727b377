"""Writes what was seen: every few seconds, at the end, and when the process is told to end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import Recorder

EVERY = 2.0  # seconds between two writes, at least
SHARE = 0.002  # of the time that writing may take

_due = 0.0
_complained = False
_owner = 0  # the process that records; a fork of it does not


def install(recorder: Recorder) -> None:
    """See that what ``recorder`` holds is written, whatever becomes of the process."""
    global _due, _owner
    _owner = os.getpid()
    _due = time.monotonic() + EVERY
    atexit.register(write, recorder)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.stop)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:

        def ended(number: int, frame: Any) -> None:
            if os.getpid() == _owner:
                write(recorder)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, ended)


def write_if_due(recorder: Recorder) -> None:
    """Write every few seconds, and more seldom where it takes long."""
    global _due
    if recorder.samples in (1, 32, 1024):
        _check(recorder)
    if time.monotonic() < _due:
        return
    began = time.monotonic()
    write(recorder)
    took = time.monotonic() - began
    _due = began + max(EVERY, took / SHARE)


def write(recorder: Recorder) -> None:
    """Put this process's part file in place of the one before."""
    _check(recorder)
    if recorder.stopped or os.getpid() != _owner:
        return
    try:
        found = {
            "pid": os.getpid(),
            "seconds": round(time.perf_counter() - recorder.began, 3),
            "spent": round(recorder.spent, 4),
            "torch": _torch_version(),
            "compiled": _compiled_graphs(),
            "classes": recorder.to_json(),
        }
        path = _path(recorder)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{path}.new", path)
    except Exception as error:
        complain(error)


def complain(error: Exception) -> None:
    """Say once what kept a call from being recorded; the program goes on."""
    global _complained
    if not _complained:
        _complained = True
        print(f"kernel-lsp record: some calls are not recorded: {error!r}", file=sys.stderr)


def _check(recorder: Recorder) -> None:
    """Stop where this process turns out to be one of several that do the same, or a DataLoader's worker."""
    if recorder.stopped or not (_another_rank() or _is_worker()):
        return
    recorder.stop()
    with contextlib.suppress(OSError):
        os.unlink(_path(recorder))


def _another_rank() -> bool:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return False
    return bool(distributed.get_rank() != 0)


def _is_worker() -> bool:
    data: Any = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _path(recorder: Recorder) -> str:
    return os.path.join(recorder.config["folder"], f"part-{_owner}.json")


def _torch_version() -> str:
    import torch

    return str(torch.__version__)


def _compiled_graphs() -> int:
    """How many graphs torch.compile has made: the modules inside them are not called one by one."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return 0
    return int(utils.counters["stats"].get("unique_graphs", 0))
