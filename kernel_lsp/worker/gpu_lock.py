"""One timing at a time on a GPU, whichever kernel-lsp it is of: a lock on a file beside the store."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernel_lsp.validation import failures

#: seconds between two attempts
_POLL_SECONDS = 0.05


@contextlib.contextmanager
def held(folder: str | None, device: torch.device, until: float, emit: Callable[[str, Any], None]) -> Iterator[None]:
    """Hold the lock of ``device`` within the context. The system lets it go when the process ends, however it ends.

    Without a folder, or with one that cannot be written, nothing is held.

    Args:
        until: the moment, by time.monotonic, at which waiting is given up.

    Raises:
        Failure: "timeout", where another process held it until then.
    """
    file = _opened(folder, device)
    if file is None:
        yield
        return
    try:
        _take(file, until, emit)
        yield
    finally:
        os.close(file)


def _opened(folder: str | None, device: torch.device) -> int | None:
    if not folder or sys.platform == "win32":
        return None
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        return os.open(os.path.join(folder, f"{_name(device)}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None


def _name(device: torch.device) -> str:
    """The same for the same GPU, by whatever number a process knows it."""
    if device.type != "cuda":
        return device.type
    properties = torch.cuda.get_device_properties(device)
    return f"gpu-{getattr(properties, 'uuid', device.index)}"


def _take(file: int, until: float, emit: Callable[[str, Any], None]) -> None:
    import fcntl

    said = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                reason = "another kernel-lsp was timing on this GPU until the time was over"
                raise failures.Failure("timeout", reason) from None
        except OSError:  # a file system without locks
            return
        if not said:
            message = "waiting for another kernel-lsp that is timing on this GPU"
            emit("progress", {"stage": "time", "message": message, "fraction": 0.7})
            said = True
        time.sleep(_POLL_SECONDS)
