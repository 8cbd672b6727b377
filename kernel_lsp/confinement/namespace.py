"""A root folder of its own, with what Landlock would allow in it: a mount namespace, where there is no Landlock.

The new root is a small file system in memory. What the rules name is bound into it at its own place, with the symbolic
links on the way, and read-only but where the rules say otherwise. Then the old root is let go of: no path leads there, and
capabilities, which are dropped next, were what it took to mount anything. Files that are open already are opened once
more in the new root, since /proc/self/fd leads to where they were opened.

It is the root of all the process's threads. From any of them paths lead to every other (/proc/self/task/<thread>/root), so
one thread with the old root would be a way out for all. The mount namespace is therefore made before the user's module is
imported, which may start threads: they share it then, and the kernel gives a new root to all that had the old one.

Root makes such a namespace as it is; everybody else from within a user namespace, where the system lets them make one.

Beside Landlock: what is closed is missing, not refused; a program that may be read may be started, behind all of this;
signals and sockets are left to seccomp, and where there is none, a network of its own takes care of sockets.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import tempfile
from collections.abc import Iterable

from kernel_lsp.confinement import descriptors, landlock, paths, syscalls

#: how one is made
WAYS = AS_ROOT, AS_USER = ("as root", "as a user")

_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x40000000

_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE = 1, 2, 4, 32, 4096, 16384
_UNBINDABLE, _PRIVATE = 1 << 17, 1 << 18
_DETACH = 2
#: what a mount is, as /proc/self/mountinfo says it: in a user namespace none of these may be taken back
_KEPT = {b"ro": _READ_ONLY, b"nosuid": _NO_SUID, b"nodev": _NO_DEVICES, b"noexec": 8, b"nosymfollow": 256}
#: (setting of the kernel, its value where users may make no namespace, one where they may)
_SETTINGS = (
    ("user.max_user_namespaces", "0", "15000"),
    ("user.max_mnt_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu, unless AppArmor has a profile for the program
)
#: where files lie that are open already, until they have been opened once more
_OPENED = "/.opened"
#: the process that has called ``begin``
_begun: set[int] = set()


def way(ways: Iterable[str] = WAYS) -> str:
    """The first of ``ways`` by which a process here gets a root of its own, "" where none is. It is tried."""
    return next((way for way in ways if _works(way)), "")


def _works(way: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            try:
                begin(way)
                enter(paths.rules(folder, [], gpu=True, compiles=True, shared_memory=True), folder, [], True)
                os._exit(0 if os.path.isdir(folder) and not _open_behind_it() else 1)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0


def _open_behind_it() -> bool:
    """Whether the processes outside are seen, or a path through them; or this program's own file can be written to.

    It lies where it was before. Linux refuses writes to a program that runs, but for a few versions (6.11, 6.12).
    """
    with contextlib.suppress(OSError):
        os.close(os.open("/proc/self/exe", os.O_WRONLY | os.O_CLOEXEC))
        return True
    return os.path.exists(f"/proc/{os.getppid()}")


def how_to_permit() -> str:
    """What lets users make one, as far as this system says what keeps them from it."""
    closed = []
    for name, value, wanted in _SETTINGS:
        with contextlib.suppress(OSError), open(f"/proc/sys/{name.replace('.', '/')}") as file:
            if file.read().strip() == value:
                closed.append(f"{name}={wanted}")
    if closed:
        return f"sysctl {' '.join(closed)}"
    return "in a container, start it with a seccomp profile that lets unshare, mount and pivot_root through"


def begin(way: str) -> None:
    """Gain the right to call ``enter``: in namespaces of its own, with everything in them as it is outside.

    Separately, since the user's module may start threads when it is imported. Then it is too late for a user namespace, and a mount
    namespace would not be theirs. In a user namespace the process has its user's number and rights as before.

    Raises:
        OSError: the kernel refuses.
    """
    if not way:
        return
    user, group = os.geteuid(), os.getegid()
    syscalls.call("unshare", ctypes.c_ulong(_NEW_MOUNTS | (_NEW_USER if way == AS_USER else 0)))
    _begun.add(os.getpid())
    if way != AS_USER:
        return
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(rules: Iterable[paths.Rule], folder: str, stands: Iterable[str], alone: bool) -> None:
    """Leave this process, with all its threads, a root with the paths of ``rules`` (path, rights) alone, after ``begin``.

    ``folder``: one that is its own. ``stands``: folders that are there in any case, if empty. ``alone``: no network, and nothing that other
    processes share by name, for this thread and what it starts.

    Raises:
        OSError: the kernel refuses.
    """
    if os.getpid() not in _begun:  # others would get the new root, too
        raise OSError(errno.EPERM, "its mount namespace is not its own", "pivot_root")
    places, links = _plan(rules)
    top = tempfile.mkdtemp(prefix=".", dir=folder)
    if alone:
        syscalls.call("unshare", ctypes.c_ulong(_NEW_NETWORK | _NEW_IPC))
    _mount(None, "/", _PRIVATE | _RECURSIVE)  # nothing that is mounted from now on is seen outside
    _mount("tmpfs", top, _NO_SUID | _NO_DEVICES, kind="tmpfs", options="mode=755,size=4m")
    _mount(None, top, _UNBINDABLE)  # it lies in what is bound into it
    for place in places:
        _bind(place, top + place, made=_around(place, places) == "")
    for place in stands:
        os.makedirs(top + _follow(place, links), exist_ok=True)
    for place, leads in links.items():
        if _around(place, places) == "" and not os.path.lexists(top + place):
            os.makedirs(os.path.dirname(top + place), exist_ok=True)
            os.symlink(leads, top + place)
    opened = descriptors.read_files()
    for fd, path in opened.items():
        _bind(path, f"{top}{_OPENED}/{fd}", made=True)
    _turn(top)
    _close(places)
    _read_on(opened)
    _hide(f"/proc/{os.getpid()}/map_files")
    os.rmdir(top)
    _mount(None, "/", _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)


def _turn(top: str) -> None:
    """Make a folder the root, and let go of the old one.

    Not by ".": threads of a process stand in one folder, and another may change it.
    """
    # The old root comes to lie upon the new one, and goes.
    syscalls.call("pivot_root", os.fsencode(top), os.fsencode(top))
    syscalls.call("umount2", b"/", ctypes.c_int(_DETACH))
    os.chdir("/")


def _hide(place: str) -> None:
    """Have nothing lie in a folder.

    /proc/self/map_files leads to the programs and libraries in memory, where they lay in the old root. It takes a power
    that this thread gives up, and threads that the module has started keep.
    """
    if os.path.isdir(place):
        _mount("tmpfs", place, _READ_ONLY | _NO_SUID | _NO_DEVICES, kind="tmpfs", options="mode=555,size=4k")


def _read_on(opened: Iterable[int]) -> None:
    """Have descriptors lead to the files that were bound for them, and to nothing that can be written to."""
    for fd in opened:
        descriptors.open_again(fd, f"{_OPENED}/{fd}")
    descriptors.leave_other_mounts()
    for fd in opened:
        place = f"{_OPENED}/{fd}"
        syscalls.call("umount2", place.encode(), ctypes.c_int(_DETACH))
        os.unlink(place)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(_OPENED)


def _plan(rules: Iterable[paths.Rule]) -> tuple[dict[str, int], dict[str, str]]:
    """(place → rights of what is to be bound, an outer one before what lies in it; symbolic link → where it leads).

    A place has the rights of those around it, too, as behind Landlock; one that has no more than those needs no mount.
    """
    links: dict[str, str] = {}
    named: dict[str, int] = {}
    for path, rights in rules:
        place = _follow(path, links)
        if os.path.exists(place):
            named[place] = named.get(place, 0) | rights
    places: dict[str, int] = {}
    for place in sorted(named):
        around = _around(place, places)
        rights = named[place] | places.get(around, 0)
        if not around or _flags(place, rights) != _flags(place, places[around]):
            places[place] = rights
    return places, links


def _follow(path: str, links: dict[str, str]) -> str:
    """The place that a path leads to; the links on the way are added to ``links``."""
    place, rest, followed = "/", path.split("/")[::-1], 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)
            continue
        here = os.path.join(place, name)
        try:
            leads = links.get(here) or os.readlink(here)
        except OSError:  # not a link, or not there
            place = here
            continue
        followed += 1
        if followed > 40:  # as many as the kernel follows
            return here
        links[here] = leads
        place = "/" if leads.startswith("/") else place
        rest += leads.split("/")[::-1]
    return place


def _around(place: str, places: Iterable[str]) -> str:
    """The innermost of ``places`` that lies around one; "" where none does."""
    while place != "/":
        place = os.path.dirname(place)
        if place in places:
            return place
    return ""


def _flags(place: str, rights: int) -> int:
    """How a place with these rights is mounted."""
    flags = _NO_SUID if rights & landlock.WRITE else _NO_SUID | _READ_ONLY
    return flags if rights & landlock.IOCTL or not os.path.isdir(place) else flags | _NO_DEVICES


def _bind(source: str, target: str, made: bool) -> None:
    """Have a file or folder show in another place too, with what is mounted in it. ``made``: that place is made first."""
    if made and os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif made:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _mount(source, target, _BIND | _RECURSIVE)


def _close(places: dict[str, int]) -> None:
    """Make every mount below the root, also those that came with a folder, what the rules say."""
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = [line.split()[4:6] for line in file]
    for point, options in mounts:
        place = os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), point))
        if place == "/":
            continue
        around = place if place in places else _around(place, places)
        flags = _flags(place, places.get(around, 0))
        for option in options.split(b","):
            flags |= _KEPT.get(option, 0)
        try:
            _mount(None, place, _REMOUNT | _BIND | flags)
        except OSError as error:
            # Another mount lies upon it: the path leads to that one, which is in the list as well.
            if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                raise


def _mount(source: str | None, target: str, flags: int, kind: str | None = None, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    data = None if options is None else options.encode()
    syscalls.call("mount", *words, ctypes.c_ulong(flags), data)
