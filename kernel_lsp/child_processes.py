"""Children that die with their parent, and what their end meant."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

#: how the line begins with which a worker says why it ends on its own; other processes may write more behind it
ENDING = "kernel-lsp worker ends: "


def let_others_first() -> None:
    """Give way to whatever else wants the processor: the editor in which somebody types.

    Linux shares the processor between sessions first (autogroups), and the worker leads one; where it does not, the
    session is somebody else's.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    if sys.platform != "linux" or os.getsid(0) != os.getpid():
        return
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write("10")


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends (Linux); ``parent`` closes the race at the fork."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def fork() -> int:
    """``os.fork``; the child leads a process group of its own, dies with its parent and has default signals."""
    parent = os.getpid()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        die_with(parent)
        return 0
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # both sides do it, so that killpg works at once
    return pid


def kill_group(pid: int) -> None:
    """SIGKILL to a child that leads a group, and to everything it started in it."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use; 0 where that cannot be found out."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def describe(status: int) -> str:
    """A wait status in words: "killed by SIGSEGV", "exit status 3"."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"killed by {signal.Signals(number).name}"
        except ValueError:
            return f"killed by signal {number}"
    return f"exit status {os.WEXITSTATUS(status)}"
