"""Landlock: the kernel's own list of files that a process may read, write and execute; network and signals, too.

Each version of its interface (ABI) adds rights: 1 (Linux 5.13) files, 2 moving them, 3 truncating, 4 TCP, 5 device
controls, 6 abstract unix sockets and signals. A process behind it cannot trace one that is not, whoever its user is,
so /proc/PID/mem, /proc/PID/fd and their like are closed to it as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable

from kernel_lsp.confinement import syscalls

_EXECUTE, WRITE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_REFER, _TRUNCATE, IOCTL = 1 << 13, 1 << 14, 1 << 15
_FIRST = (1 << 13) - 1  # the rights of ABI 1
_OF_FILES = _EXECUTE | WRITE | _READ_FILE | _TRUNCATE | IOCTL

READ = _READ_FILE | _READ_FOLDER
EXECUTE = _EXECUTE | _READ_FILE
#: an existing file or device, nothing made beside it
CHANGE = READ | WRITE | _TRUNCATE
DEVICE = CHANGE | IOCTL
#: anything but special files and device controls, and nothing of it executed
OWN = (_FIRST | _REFER | _TRUNCATE) & ~(_EXECUTE | 1 << 6 | 1 << 10 | 1 << 11)

_SCOPES = {"abstract sockets": 1, "signals": 2}
_VERSION_FLAG = 1


class _Handled(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def abi() -> int:
    """The version of Landlock that runs here; 0 where there is none."""
    if not syscalls.known():
        return 0
    try:
        return syscalls.call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]], version: int, scopes: Iterable[str] = tuple(_SCOPES)) -> None:
    """Leave this thread, and what it starts from now on, the rights of ``rules`` (path, rights) alone.

    A path that is not there is passed over. No TCP port is left; ``scopes``: also nothing of these kinds that belongs to a process outside.
    Wants PR_SET_NO_NEW_PRIVS.

    Raises:
        OSError: the kernel refuses.
    """
    files = (
        _FIRST | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0) | (IOCTL if version >= 5 else 0)
    )
    handled = _Handled(files, 3 if version >= 4 else 0, sum(_SCOPES[s] for s in scopes) if version >= 6 else 0)
    # An older kernel refuses a structure that is longer than the one it knows.
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = syscalls.call("landlock_create_ruleset", ctypes.byref(handled), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path, rights in rules:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, rights & files)
        syscalls.call("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            rights &= _OF_FILES
        if rights:
            beneath = _Beneath(rights, at)
            syscalls.call(
                "landlock_add_rule", ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(beneath), ctypes.c_uint32(0)
            )
    finally:
        os.close(at)
