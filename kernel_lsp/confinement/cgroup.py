"""A control group for candidates: the number of their processes is limited for every user, also root."""

from __future__ import annotations

import contextlib
import os
import time

from kernel_lsp.confinement import rlimits

_ROOT = "/sys/fs/cgroup"
#: seconds for the last processes of a group to go
_END_SECONDS = 0.5


def possible() -> str:
    """The folder that a group would be made in; "" where none may be."""
    return next((parent for parent in _parents() if os.access(parent, os.W_OK)), "")


def make(name: str) -> str:
    """Make a group; its folder, or "" where none may be made."""
    parent = possible()
    if not parent:
        return ""
    folder = os.path.join(parent, name)
    try:
        os.mkdir(folder)
    except OSError:
        return ""
    try:
        with open(os.path.join(folder, "pids.max"), "w") as file:
            file.write(str(rlimits.processes()))
    except OSError:
        remove(folder)
        return ""
    return folder


def enter(folder: str) -> None:
    """Put this process, and what it starts, into a group.

    Raises:
        OSError: it cannot be entered.
    """
    with open(os.path.join(folder, "cgroup.procs"), "w") as file:
        file.write("0")


def remove(folder: str) -> None:
    """Remove a group once its processes are gone, which may take a moment."""
    until = time.monotonic() + _END_SECONDS
    while folder and os.path.isdir(folder):
        try:
            os.rmdir(folder)
        except OSError:
            if time.monotonic() > until:
                return
            time.sleep(0.02)


def _parents() -> list[str]:
    """Folders that a group with a limit for processes may be made in: in version 2 beside this process's own group.

    Version 2 has no limits below a group that has processes itself.
    """
    found = []
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers == "":
                own = os.path.normpath(_ROOT + path)
                parent = own if path == "/" else os.path.dirname(own)
                with contextlib.suppress(OSError), open(os.path.join(parent, "cgroup.subtree_control")) as control:
                    if "pids" in control.read().split():
                        found.append(parent)
            elif "pids" in controllers.split(","):
                found.append(os.path.normpath(os.path.join(_ROOT, controllers) + path))
    return [folder for folder in found if os.path.isdir(folder)]
