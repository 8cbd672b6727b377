"""The warm processes that all workers of a session's tests share, and how a worker gets zygotes from them.

    nursery ── "native", "interpreter", "unmarked": each has done what a zygote of its role does first (worker/zygote.py),
               listens in a folder, and forks a zygote for every worker that asks

A worker asks with the descriptors of a zygote, its environment and its folder. What a library reads when it is imported
must be the same for both, or else the worker warms its own processes: hence a folder for each ``_key``. The zygotes end
when their worker closes their sockets, the nursery with the process that ``owner`` names.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from kernel_lsp import child_processes
from kernel_lsp.worker import zygote

#: variables that decide what libraries make of themselves when they are imported
_READ_AT_IMPORT = ("LD_", "PYTHON", "OMP_", "MKL_", "OPENBLAS", "CUDA", "TORCH", "PYTORCH", "TRITON", "NVML", "HOME")
#: seconds that a worker waits for a nursery that is being started
_START_SECONDS = 100.0

Main = Callable[[dict[str, socket.socket], int], NoReturn]


def instead_of(main: Main, place: str, program: str) -> Main:
    """What a worker's first child does in place of ``zygote._main``; call it in the worker's own process.

    The first worker of a key does what it always does: the only test of a session needs no nursery. Under pytest-xdist there are
    many tests, and what it would warm up for itself alone is what the nursery warms up.
    """
    if not place:
        return main
    folder = Path(place, _key())
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "seen").exists():
            (folder / "seen").touch()
            if "PYTEST_XDIST_WORKER" not in os.environ:
                return main
        if not (folder / "begun").exists():
            (folder / "begun").touch()
            _start(program, str(folder))
    return lambda sockets, tell: _hand_over(sockets, tell, folder, main)


def _key() -> str:
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith(_READ_AT_IMPORT))
    text = repr((sys.executable, tuple(sys.flags), sys.path, variables))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _start(program: str, folder: str) -> None:
    """Start the nursery without a parent that waits for it."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    os.setsid()
    if os.fork() == 0:
        log = os.open(f"{folder}/log", os.O_CREAT | os.O_WRONLY)
        null = os.open(os.devnull, os.O_RDWR)
        for target, fd in enumerate((null, null, log)):
            os.dup2(fd, target)
        os.closerange(3, 256)
        os.execv(sys.executable, [sys.executable, program, "--nursery", folder])
    os._exit(0)


def _hand_over(sockets: dict[str, socket.socket], tell: int, folder: Path, main: Main) -> NoReturn:
    deadline = time.monotonic() + _START_SECONDS
    while not all((folder / role).exists() for role in sockets):
        if (folder / "failed").exists() or time.monotonic() > deadline:
            main(sockets, tell)
        time.sleep(0.02)
    message = json.dumps({"environment": dict(os.environ), "folder": os.getcwd()}).encode()
    for role, control in sockets.items():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(str(folder / role))
            socket.send_fds(asking, [message], [control.fileno(), tell, 2])
    os._exit(0)


def serve(folder: str) -> None:
    """Be the nursery of a folder."""
    before = dict(os.environ)
    try:
        owner = os.pidfd_open(int(Path(folder).with_name("owner").read_text()))
        threads = zygote._import_torch()
        gc.collect()
        gc.freeze()
        role = next((role for role in zygote.ROLES[1:] if child_processes.fork() == 0), zygote.ROLES[0])
        zygote._warm_up(role)
        gc.collect()
        gc.freeze()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"{folder}/.{role}")
        listener.listen(64)
        os.rename(f"{folder}/.{role}", f"{folder}/{role}")
    except BaseException:
        traceback.print_exc()
        Path(folder, "failed").touch()
        raise
    changed = {name: os.environ.get(name) for name in {*before, *os.environ}}
    changed = {name: value for name, value in changed.items() if value != before.get(name)}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, owner], [], [])
        if owner in ready:
            os._exit(0)
        asking, _ = listener.accept()
        data, fds, _, _ = socket.recv_fds(asking, 1 << 20, 3)
        asking.close()
        if len(fds) == 3 and child_processes.fork() == 0:
            listener.close()
            os.close(owner)
            _be_a_zygote(json.loads(data), changed, fds, threads)
        for fd in fds:
            os.close(fd)


def _be_a_zygote(asked: dict[str, Any], changed: dict[str, str | None], fds: list[int], threads: int) -> NoReturn:
    """``changed``: variables that warming up sets, or removes."""
    control, tell, stderr = fds
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.close(stderr)
    os.environ.clear()
    os.environ |= asked["environment"] | {name: value for name, value in changed.items() if value is not None}
    for name, value in changed.items():
        if value is None:
            os.environ.pop(name, None)
    with contextlib.suppress(OSError):
        os.chdir(asked["folder"])
    tempfile.tempdir = None  # another folder may be named for them now
    own = socket.socket(fileno=control)
    zygote._say(own, {"ready": 0.0})
    zygote._serve(own, threads, tell)
