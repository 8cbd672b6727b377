"""The place that a trial runs in: limits and folders of its own. (Landlock and seccomp belong here, too.)"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile

#: bytes of address space that an interpreted trial may add to what it was forked with
INTERPRETED_MEMORY = 8 << 30
#: bytes of the largest file that a trial may write
FILE_SIZE = 4 << 30


def enter(folder: str, interpreted: bool) -> None:
    """Confine this process: temporary files and every compiler's cache in ``folder``, no core files, bounded memory.

    A cache of its own, because a candidate that may write to a shared one may plant a kernel there. Address space is
    bounded under the interpreter alone: CUDA reserves more of it than any machine has.
    """
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR"):
        os.environ[name] = os.path.join(folder, name.lower())
        os.makedirs(os.environ[name], exist_ok=True)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes that would outlive the trial
    tempfile.tempdir = None
    os.chdir(folder)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, FILE_SIZE)
    if interpreted:
        _limit(resource.RLIMIT_AS, _address_space() + INTERPRETED_MEMORY)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (wanted, hard))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
