"""Open files that a candidate's process has from the one it was forked from."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Sequence

_DRIVER = ("/dev/nvidia", "/dev/dxg", "/dev/kfd", "/dev/dri")


def keep_only(*wanted: int) -> None:
    """Close all descriptors but the standard ones and ``wanted``; standard output and error get a state of their own.

    Processes that share an open file share its state, too: one of them can make it non-blocking for the others.
    """
    for fd in _open():
        if fd > 2 and fd not in wanted:
            with contextlib.suppress(OSError):
                os.close(fd)
    for fd in (1, 2):
        with contextlib.suppress(OSError):
            again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.dup2(again, fd)
            os.close(again)


def silence(wanted: Sequence[int], gpu: bool) -> None:
    """Turn whatever else can be written to or talked through into nothing: a module that was imported may have opened it.

    ``gpu``: the driver's own devices stay. Its libraries, which are loaded by then, go on with what they have opened.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in _open():
        with contextlib.suppress(OSError):
            read_only = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            regular = stat.S_ISREG(os.fstat(fd).st_mode)
            driver = gpu and os.readlink(f"/proc/self/fd/{fd}").startswith(_DRIVER)
            if fd > 2 and fd != null and fd not in wanted and not driver and not (read_only and regular):
                os.dup2(null, fd, inheritable=False)
    os.close(null)


def read_files() -> dict[int, str]:
    """The paths of files that are open for reading, by descriptor; one that has no path any more is turned into nothing."""
    found: dict[int, str] = {}
    for fd in _open():
        with contextlib.suppress(OSError):
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                continue
            path = os.readlink(f"/proc/self/fd/{fd}")
            if os.path.exists(path) and os.path.samestat(os.stat(path), status):
                found[fd] = path
            else:
                _nothing(fd)
    return found


def leave_other_mounts() -> None:
    """Turn files and folders that do not lie in this process's root into nothing: a thread may just have opened some."""
    with open("/proc/self/mountinfo", "rb") as file:
        here = {line.split()[0] for line in file}
    for fd in _open():
        with contextlib.suppress(OSError):
            mode = os.fstat(fd).st_mode
            if fd > 2 and (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and _mount_of(fd) not in here:
                _nothing(fd)


def _mount_of(fd: int) -> bytes:
    """The number of the mount that an open file lies in, as /proc/self/mountinfo has it."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        return next((line.split()[1] for line in file if line.startswith(b"mnt_id:")), b"")


def open_again(fd: int, path: str) -> None:
    """Read on in ``path``, where a descriptor stands; nothing where it cannot be opened."""
    try:
        again = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        _nothing(fd)
        return
    with contextlib.suppress(OSError):
        os.lseek(again, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
    with contextlib.suppress(OSError):  # a thread has closed it just now
        os.dup2(again, fd, inheritable=os.get_inheritable(fd))
    os.close(again)


def _nothing(fd: int) -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


def _open() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(os.sysconf("SC_OPEN_MAX")))
