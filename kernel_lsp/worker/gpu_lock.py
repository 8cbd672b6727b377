"""The lock of a GPU among all processes of kernel-lsp: several that check share it, one that times holds it alone.

Two files beside the store for each GPU, locked with the system's ``flock``, which ends with the process. A process that checks holds
``gpu-UUID.lock`` shared, one that times holds it exclusively. A process that checks gives it up between two checks where another waits to
time, but not while something else of the same validation uses the GPU: a check in an unmarked process, or the compiling of a tuning's variants
beside the first verdict. ``gpu-UUID.gate`` keeps processes that time from starving: one that waits for the exclusive lock holds the gate,
and no process takes the shared lock without the gate. So all that wait to time go one after the other, and then all that check at once.
No process waits for the gate while it holds the lock, so no two can wait for each other.

A process keeps its memory on the GPU while it gives way or waits to time. Where several lanes of an evaluation share a GPU, ``PARTS``
further files divide the memory among them: each ``gpu-UUID.memory-N`` stands for an equal part of it, and a request locks it to its end.
Parts are taken before the other lock. The request that waits for the last of its parts holds ``gpu-UUID.memory-gate``, so one that needs
many does not starve, and no two wait for each other's. Waiting for parts has no limit: a lane may be the last of several that need the
whole memory.

Take the lock after the trials are forked: a forked process would share it.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_lsp import device_choice, errors
from kernel_lsp.validation import failures
from kernel_lsp.worker import gpu_contention

#: seconds between two attempts, and between two events that say how long it has waited
_POLL_SECONDS, _TELL_SECONDS = 0.01, 0.5
#: seconds after which waiting to check or to time is given up: every kernel-lsp that works lets go of the lock long before
MOST_SECONDS = 1800.0
PARTS = device_choice.MEMORY_PARTS


@dataclass
class GpuLock:
    """The lock of ``device`` in this process.

    Attributes:
        file, gate: descriptors; None where nothing can be held: without a folder, in one that cannot be written, on Windows.
        memory: descriptors of the parts of the memory that it holds.
        emit: sends an event. ``waiting``, with ``{"seconds": s}``, says by how much it has waited longer.
        told: each is called with the same seconds.
    """

    device: torch.device
    emit: Callable[[str, Any], None]
    told: list[Callable[[float], None]] = field(default_factory=list)
    path: str = ""
    file: int | None = None
    gate: int | None = None
    memory: list[int] = field(default_factory=list)
    waited: float = 0.0  # seconds


def begin(
    folder: str | None,
    device: torch.device,
    emit: Callable[[str, Any], None],
    told: Callable[[float], None] = lambda seconds: None,
    parts: int = 0,
    given_back: Callable[[], bool] = lambda: True,
) -> GpuLock:
    """The lock of a GPU, held together with others that do not time. It ends with the process, or with ``end``.

    Args:
        folder: of the files; None: nothing is held.
        device: the GPU.
        emit: as ``GpuLock.emit``.
        told: one of ``GpuLock.told``.
        parts: how many of the ``PARTS`` of the GPU's memory are held until then.
        given_back: whether those that held these parts before have given their memory back; it is asked until it says so.

    Raises:
        GpuTaken: others timed on it for too long.
    """
    lock = GpuLock(device, emit, [told])
    if folder and sys.platform != "win32":
        path = os.path.join(folder, _name(device))
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            gate = _opened(f"{path}.gate")
            lock.file, lock.gate, lock.path = _opened(f"{path}.lock"), gate, f"{path}.lock"
    try:
        if parts and lock.path:
            _hold_memory(lock, lock.path.removesuffix(".lock"), parts, given_back)
        share(lock)
    except failures.Failure as failure:
        end(lock)
        raise _taken(lock, failure) from None
    return lock


def share(lock: GpuLock) -> None:
    """Hold it together with others that do not time.

    Raises:
        Failure: "timeout", where others timed for too long.
    """
    if lock.file is None or lock.gate is None:
        return
    file, gate = lock.file, lock.gate
    message = "waiting for another kernel-lsp that is timing on this GPU"
    _wait(lock, lambda: _shared(file, gate), {"stage": "check", "message": message, "fraction": 0.0}, MOST_SECONDS)


def give_way(lock: GpuLock) -> None:
    """Let processes that wait to time go first. Called by one that shares the lock, between two parts of its work.

    Raises:
        GpuTaken: others timed for too long. That says nothing of what is checked.
    """
    if lock.file is None or lock.gate is None:
        return
    import fcntl

    if _locked(lock.gate, fcntl.LOCK_SH):  # no process waits to time
        _let_go(lock.gate)
        return
    _let_go(lock.file)
    try:
        share(lock)
    except failures.Failure as failure:
        raise _taken(lock, failure) from None


@contextlib.contextmanager
def alone(lock: GpuLock, then_share: bool = True) -> Iterator[Callable[[], str]]:
    """Hold it alone within the context, and afterwards as before, or not at all.

    Gives a function that says what other programs did on the GPU since then; it is to be called within the context.

    Raises:
        Failure: "timeout", where others used the GPU for too long.
    """
    file, gate = lock.file, lock.gate
    if file is None or gate is None:
        began = time.time()
        yield lambda: gpu_contention.said(lock.device, began)
        return
    message = "waiting for another kernel-lsp that uses this GPU"
    before = lock.waited
    _let_go(file)
    try:
        _exclude(lock, file, gate, {"stage": "time", "message": message, "fraction": 0.7}, MOST_SECONDS)
        since = time.time() + (gpu_contention.EARLIER if lock.waited > before else 0.0)
        yield lambda: gpu_contention.said(lock.device, since, lock.path)
    finally:
        _let_go(file)
        if then_share:
            share(lock)


def end(lock: GpuLock) -> None:
    """Let go of it, also where a forked process has its descriptors."""
    for file in (lock.file, lock.gate, *lock.memory):
        if file is not None:
            _let_go(file)
            os.close(file)
    lock.file = lock.gate = None
    lock.memory = []


def _hold_memory(lock: GpuLock, path: str, parts: int, given_back: Callable[[], bool]) -> None:
    """Take so many parts of the memory, however long others have them. ``path``: of the GPU's files, without a suffix."""
    import fcntl

    message = "waiting for the GPU's memory, which another lane uses"
    progress = {"stage": "check", "message": message, "fraction": 0.0}
    files: list[int] = []
    try:
        for suffix in ("memory-gate", *(f"memory-{number}" for number in range(PARTS))):
            files.append(_opened(f"{path}.{suffix}"))
    except OSError:  # where a file cannot be had, nothing is held
        for file in files:
            os.close(file)
        return
    gate, *left = files

    def take() -> bool:
        for file in list(left):
            if len(lock.memory) < parts and _locked(file, fcntl.LOCK_EX):
                left.remove(file)
                lock.memory.append(file)
        return len(lock.memory) == parts

    try:
        _wait(lock, lambda: _locked(gate, fcntl.LOCK_EX), progress, math.inf)
        _wait(lock, take, progress, math.inf)
    finally:
        for file in (gate, *left):
            _let_go(file)  # also where a forked process has its descriptor
            os.close(file)
    _wait(lock, given_back, progress, math.inf)


def _exclude(lock: GpuLock, file: int, gate: int, progress: dict[str, Any], most: float) -> None:
    """Hold ``file`` alone, and ``gate`` until then. ``most``: as of ``_wait``, for each of the two."""
    import fcntl

    try:
        _wait(lock, lambda: _locked(gate, fcntl.LOCK_EX), progress, most)
        _wait(lock, lambda: _locked(file, fcntl.LOCK_EX), progress, most)
    finally:
        _let_go(gate)


def _taken(lock: GpuLock, failure: failures.Failure) -> errors.GpuTaken:
    return errors.GpuTaken(device=str(lock.device), detail=failure.reason)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _name(device: torch.device) -> str:
    """The same for the same GPU, by whatever number a process knows it."""
    if device.type != "cuda":
        return device.type
    properties = torch.cuda.get_device_properties(device)
    return f"gpu-{getattr(properties, 'uuid', device.index)}"


def _let_go(file: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_UN)


def _locked(file: int, how: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nothing is held
        pass
    return True


def _shared(file: int, gate: int) -> bool:
    """Whether the shared lock was free. It is taken under the gate, so that processes that wait to have it alone go first."""
    import fcntl

    if not _locked(gate, fcntl.LOCK_SH):
        return False
    try:
        return _locked(file, fcntl.LOCK_SH)
    finally:
        _let_go(gate)


def _wait(lock: GpuLock, attempt: Callable[[], bool], progress: dict[str, Any], most: float) -> None:
    """Try until it succeeds, and tell of the waiting while it lasts: the limits on this process's time must not count it.

    Raises:
        Failure: "timeout", after ``most`` seconds.
    """
    if attempt():
        return
    lock.emit("progress", progress)
    began = told = time.monotonic()
    try:
        while not attempt():
            time.sleep(_POLL_SECONDS)
            now = time.monotonic()
            if now - told >= _TELL_SECONDS:
                _tell(lock, now - told)
                told = now
            if now - began > most:
                reason = f"other kernel-lsp processes checked or timed on this GPU for {most / 60:.0f} minutes"
                raise failures.Failure("timeout", reason)
    finally:
        _tell(lock, time.monotonic() - told)


def _tell(lock: GpuLock, seconds: float) -> None:
    lock.waited += seconds
    for told in lock.told:
        told(seconds)
    lock.emit("waiting", {"seconds": seconds})
