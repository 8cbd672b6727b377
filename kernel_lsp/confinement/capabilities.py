"""Drops root's capabilities: most of them reach beyond files, which no other layer covers."""

from __future__ import annotations

import contextlib
import ctypes
import os

from kernel_lsp.confinement import syscalls

_PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 24, 28
_NO_ROOT_LOCKED = 0x3  # SECBIT_NOROOT and its lock: a program that root starts gets nothing back
#: reading files of other owners, as root does: a project in a container often has another owner. Landlock says which
KEPT = 1 << 2  # CAP_DAC_READ_SEARCH


def drop(kept: int = KEPT) -> None:
    """Keep ``kept`` alone, and that for root, with no way to get the others back.

    A plain user has something to lose in a user namespace only, where all of it came with being the one who made it.

    Raises:
        OSError: the kernel refuses.
    """
    kept = kept if os.geteuid() == 0 else 0
    with contextlib.suppress(OSError):
        for capability in range(64):
            if not kept >> capability & 1:
                syscalls.prctl(_PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):
        syscalls.prctl(_PR_SET_SECUREBITS, _NO_ROOT_LOCKED)
    held = _permitted()
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    words = [held & kept, held & kept, 0, 0, 0, 0]
    syscalls.call("capset", header, (ctypes.c_uint32 * 6)(*words))


def _permitted() -> int:
    with open("/proc/self/status") as file:
        return next((int(line.split()[1], 16) for line in file if line.startswith("CapPrm:")), 0)
