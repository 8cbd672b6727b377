"""What a candidate's process may use at most. Hard limits: it cannot raise them again."""

from __future__ import annotations

import contextlib
import os
import resource

#: bytes of address space that a process without a GPU may add to what it was forked with
MEMORY = 8 << 30
#: bytes of the largest file that it may write
FILE_SIZE = 4 << 30
OPEN_FILES = 4096


def processes() -> int:
    """How many processes and threads a candidate may have: torch and the compiler have some for each core."""
    return 256 + 8 * (os.cpu_count() or 1)


def enter(address_space: bool) -> None:
    """Take on the limits. Address space is bounded where asked: CUDA reserves more of it than any machine has."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, FILE_SIZE)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit(resource.RLIMIT_MEMLOCK, 1 << 30)
    # It counts all of the user's, so what there is comes on top; for root it does not count.
    _limit(resource.RLIMIT_NPROC, _of_this_user() + processes())
    if address_space:
        _limit(resource.RLIMIT_AS, _address_space() + MEMORY)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory runs out, this process goes first


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (wanted, wanted))


def _of_this_user() -> int:
    """How many threads this user's processes have."""
    uid, count = os.getuid(), 0
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                    count += os.stat(f"/proc/{name}/task").st_nlink - 2
    return count


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
