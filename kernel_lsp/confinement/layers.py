"""Which layers this system has for confining a candidate, what is open without each, and how to get it."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

from kernel_lsp.confinement import cgroup, landlock, namespace, seccomp, syscalls

#: for tests: names of layers, with commas between them, that are taken for missing
WITHOUT = "KERNEL_LSP_WITHOUT_LAYERS"

_NEWER = "Linux 6.12 or newer has all of it"


@dataclass(frozen=True)
class Layers:
    """What there is. ``landlock``: its version, 0 for none; ``cgroup``: the folder of the group for candidates, or "".

    ``namespace``: how a root folder of its own is made in place of Landlock (namespace.WAYS); "" where none is.
    """

    landlock: int = 0
    seccomp: bool = False
    cgroup: str = ""
    counted: bool = False  # the user's processes can be limited by number: not those of root
    namespace: str = ""

    @property
    def signals(self) -> bool:
        """Whether Landlock keeps signals and abstract sockets inside."""
        return self.landlock >= 6


@dataclass
class Finding:
    """A layer as ``doctor`` shows it; ``fix`` is empty when all is well."""

    name: str
    found: str
    fix: str = ""


def look(group: str | None = None) -> Layers:
    """What this system has. ``group``: the folder of a cgroup that was made; one is looked for where it is None."""
    off = set(os.environ.get(WITHOUT, "").split(","))
    if sys.platform != "linux":
        return Layers()
    if group is None:
        group = cgroup.possible()
    ways = [way for way in namespace.WAYS if f"namespace {way}" not in off]
    version = 0 if "landlock" in off else landlock.abi()
    return Layers(
        landlock=version,
        seccomp="seccomp" not in off and seccomp.available(),
        cgroup="" if "cgroup" in off else group,
        counted="rlimits" not in off and os.getuid() != 0,
        namespace="" if version or "namespace" in off else namespace.way(ways),
    )


def to_json(found: Layers) -> dict[str, Any]:
    """The layers as data that is sent to other processes."""
    return asdict(found)


def from_json(data: dict[str, Any] | None) -> Layers:
    """What ``to_json`` gave; without ``data`` this system is looked at."""
    return look() if data is None else Layers(**data)


def limits(found: Layers, gpu: bool) -> list[str]:
    """What the missing layers leave open while a candidate runs, a sentence each, for the verdict."""
    if sys.platform != "linux":
        return ["the kernel was not confined while it was validated: that takes Linux"]
    said = []
    if not found.landlock and not found.namespace:
        said.append(
            "while it was validated the kernel could read and write the user's files (no Landlock, no namespace)"
        )
    elif 0 < found.landlock < 3:
        said.append(
            f"while it was validated the kernel could empty the user's files (Landlock {found.landlock}, not 3)"
        )
    if not found.seccomp:
        open_ = "" if found.namespace else "use the network and " if found.landlock < 4 else "use UDP and "
        said.append(f"while it was validated the kernel could {open_}start processes (no seccomp filter)")
    elif gpu and not found.cgroup and not found.counted:
        said.append("the number of processes was not limited while the kernel was validated (root, and no cgroup)")
    if not found.seccomp and not found.signals:
        said.append("while it was validated the kernel could end other processes of the user")
    return said


def findings(found: Layers) -> list[Finding]:
    """All layers, for ``doctor``."""
    if sys.platform != "linux":
        fix = "Kernels are validated as the user, with all the user may do: use the worker on Linux (kernelLsp.workerPrefix)."
        return [Finding("confinement", f"none on {sys.platform}", fix)]
    if found.namespace:
        files = Finding("Landlock (files)", f"missing; a namespace made {found.namespace} takes its place")
    elif not found.landlock:
        enable = f"Use Linux 5.13 or newer ({_NEWER}) with `landlock` in /sys/kernel/security/lsm (kernel option "
        enable += "lsm=landlock,…); in a container, a runtime whose seccomp profile lets it through. Or let users make "
        enable += f"namespaces: {namespace.how_to_permit()}."
        said = "missing, and no namespace may be made: the user's files are open to kernels under validation"
        files = Finding("Landlock (files)", said, enable)
    elif found.landlock < 6:
        lacks = ["device controls", "signals and abstract sockets"]
        lacks = (["truncating files"] if found.landlock < 3 else []) + (["TCP"] if found.landlock < 4 else []) + lacks
        files = Finding("Landlock (files)", f"version {found.landlock}, without {', '.join(lacks)}", f"{_NEWER}.")
    else:
        files = Finding("Landlock (files)", f"version {found.landlock}")
    if found.seccomp:
        calls = Finding("seccomp (sockets, processes)", "available")
    elif syscalls.known():
        fix = "A kernel with CONFIG_SECCOMP_FILTER; in a container, a runtime that lets the call seccomp through."
        calls = Finding("seccomp (sockets, processes)", "missing: the network is open to kernels under validation", fix)
    else:
        calls = Finding("seccomp (sockets, processes)", "no filter for this processor", "Use x86_64 or aarch64.")
    if found.cgroup:
        group = Finding("cgroup (number of processes)", found.cgroup)
    elif found.counted:
        group = Finding(
            "cgroup (number of processes)", "none may be made; a limit for the user's processes takes its place"
        )
    else:
        fix = "Do not run as root, where the limit for a user's processes takes its place, or run where a cgroup may be made."
        group = Finding("cgroup (number of processes)", "none may be made, and root's processes cannot be limited", fix)
    return [files, calls, group]
