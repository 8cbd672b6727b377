"""How a process is confined before a candidate's first line runs in it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_lsp.confinement import (
    capabilities,
    cgroup,
    descriptors,
    environment,
    landlock,
    namespace,
    paths,
    rlimits,
    seccomp,
    syscalls,
)
from kernel_lsp.confinement.layers import Layers

_PR_SET_NO_NEW_PRIVS = 38

#: what a GPU's driver may need to start and to share memory between two processes, the closest first
SHARING = ("nothing", "shared memory", "sockets", "everything")


@dataclass(frozen=True)
class Bounds:
    """What a candidate's process gets. ``folder``: where it may write; ``reads``: what it may read beside the system."""

    folder: str
    reads: Sequence[str] = field(default_factory=list)
    gpu: bool = False
    compiles: bool = False  # it may start the compiler's programs
    bounded: bool = True  # its address space is: not with a GPU, nor where memory is made that is never touched
    memory_files: bool = True  # it may make some: messages with tensors are
    sharing: str = "nothing"  # of SHARING
    unmarked: bool = False  # its environment is a user's program's: no compiler's cache is named in it
    stands: str = ""  # the folder that it stands in, which it may read; ``folder`` where none is named


def own_folders(folder: str) -> dict[str, str]:
    """Temporary files and every compiler's cache in ``folder``, as environment variables; the folders are made.

    A cache of its own, because a candidate that may write to a shared one may plant a kernel there.
    """
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR", "TMPDIR")
    places = {name: os.path.join(folder, name.lower()) for name in names}
    for place in places.values():
        os.makedirs(place, exist_ok=True)
    return places | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # no pool of processes that would outlive the trial


def begin(found: Layers, sharing: str = SHARING[0]) -> None:
    """What has to be done before the user's module is imported. ``sharing``: as in the bounds.

    Raises:
        OSError: a layer that there is cannot be put on.
    """
    if sys.platform == "linux" and sharing != "everything":
        namespace.begin(found.namespace)


def enter(bounds: Bounds, found: Layers, channel: Sequence[int]) -> None:
    """Confine this process for good with every layer that there is, after ``begin``. ``channel``: descriptors that it keeps.

    Where it is to have a GPU, CUDA has to be started afterwards and then ``refuse_calls`` called: the driver opens sockets and more when it
    starts, and the threads that it has then are confined with it.

    Raises:
        OSError: a layer that there is cannot be put on: the candidate must not run then.
    """
    rules = list(_rules(bounds))
    environment.scrub(_variables(bounds))
    tempfile.tempdir = None
    os.chdir(bounds.stands or bounds.folder)
    sys.path[:] = [path for path in sys.path if path not in ("", ".")]  # now the folder that it writes in
    if sys.platform != "linux":
        return
    if bounds.sharing == "everything":  # the driver does not start behind less
        rlimits.enter(bounds.bounded)
        return
    descriptors.silence(channel, bounds.gpu)
    if found.cgroup:
        cgroup.enter(found.cgroup)
    rlimits.enter(bounds.bounded)
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:  # Landlock takes the thread that asks, and what comes from it; a root of its own takes them all
        print(f"{threads - 1} threads of {os.getpid()} began before it was confined", file=sys.stderr, flush=True)
    if found.namespace:
        stands = bounds.stands or bounds.folder
        # Where there is a filter for calls, it takes care of all that a network of its own would.
        namespace.enter(rules, bounds.folder, [stands, os.path.expanduser("~")], alone=not found.seccomp)
        os.chdir(stands)
    # By its number a file is opened that no path leads to: with the right to read all, and where no filter refuses the call.
    capabilities.drop(0 if found.namespace and not found.seccomp else capabilities.KEPT)
    syscalls.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    open_sockets = bounds.sharing == "sockets"
    if found.landlock:
        landlock.restrict(rules, found.landlock, ["signals"] if open_sockets else ["signals", "abstract sockets"])
    if not bounds.gpu:
        refuse_calls(bounds, found)


def refuse_calls(bounds: Bounds, found: Layers) -> None:
    """The last layer: refuse this process and all its threads the system's calls that they have no use for."""
    if sys.platform == "linux" and found.seccomp and bounds.sharing != "everything":
        own = None if found.signals else os.getpid()
        open_sockets = bounds.sharing == "sockets"
        seccomp.install(seccomp.program(bounds.compiles, open_sockets, bounds.memory_files, own))


def _variables(bounds: Bounds) -> dict[str, str]:
    home = {"HOME": os.path.expanduser("~")}
    if bounds.unmarked:
        stands = {"PWD": bounds.stands or bounds.folder}
        return environment.usual(dict(os.environ)) | home | stands | {"TMPDIR": bounds.folder}
    return environment.kept(dict(os.environ)) | own_folders(bounds.folder) | home | {"HF_HUB_OFFLINE": "1"}


def _rules(bounds: Bounds) -> list[paths.Rule]:
    shared_memory = bounds.sharing != "nothing"
    return list(paths.rules(bounds.folder, bounds.reads, bounds.gpu, bounds.compiles, shared_memory))
