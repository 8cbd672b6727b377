"""seccomp: refuses system calls to a candidate's process.

The filter is a few dozen comparisons, written here: the packages for it want libseccomp, a library of the system that
many machines lack. A refused call fails with EPERM and does not kill, so that a library that only tries it goes on.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from kernel_lsp.confinement import syscalls

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM
#: the call does nothing and says that all went well
_PRETEND = _ERRNO
_UNKNOWN = _ERRNO | errno.ENOSYS

_LOAD, _EQUAL, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x45, 0x06, 0x54
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in the kernel's description of a call
_X32 = 0x40000000

_SET_FILTER, _FOR_ALL_THREADS = 1, 1

_CLONE_THREAD = 0x10000
_NAMESPACES = 0x7E020080  # CLONE_NEW*
_AF_UNIX, _SOCK_DGRAM = 1, 2
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_REFUSED = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set", "setpriority", "migrate_pages"),
    *("keyctl", "add_key", "request_key"),
    *("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("mount_setattr", "open_tree_attr", "open_by_handle_at", "unshare", "setns"),
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff"),
    *("acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "personality", "iopl", "ioperm", "modify_ldt", "vhangup", "syslog", "fanotify_init"),
    *("chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr"),
    *("fremovexattr", "setxattrat", "removexattrat", "file_setattr"),
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
)
#: compilers and libraries stop where these fail, and need none of them. A process stays in its group, to be ended with it.
_PRETENDED = (
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "setsid",
    "setpgid",
)
_PROCESSES = ("fork", "vfork", "execve", "execveat")
_SIGNALS = ("kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal", "rt_tgsigqueueinfo", "tgkill")

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def available() -> bool:
    """Whether this kernel takes a filter."""
    if not syscalls.known():
        return False
    try:
        action = ctypes.c_uint32(_ERRNO)
        syscalls.call("seccomp", ctypes.c_uint(2), ctypes.c_uint(0), ctypes.byref(action))  # GET_ACTION_AVAIL
    except OSError:
        return False
    return True


def program(processes: bool, unix_sockets: bool, memory_files: bool, own: int | None) -> list[Instruction]:
    """The filter. ``processes``: it may start some; ``unix_sockets``: it may open sockets of this machine.

    ``memory_files``: it may make files in memory, from which programs can be started whatever Landlock says.
    ``own``: the process may signal itself alone, by this process id, where nothing else keeps it from others; else None.
    """
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, syscalls.ARCHITECTURES[platform.machine()]),
        (_RETURN, 0, 0, _REFUSE),  # a call of another kind of machine, whose numbers mean something else
        (_LOAD, 0, 0, _NUMBER),
    ]
    if platform.machine() == "x86_64":
        code += [(_ANY_BIT, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE)]
    refused = [*_REFUSED, *(() if processes else _PROCESSES), *(() if memory_files else ("memfd_create",))]
    for name in refused:
        code += _when(name, [(_RETURN, 0, 0, _REFUSE)])
    for name in _PRETENDED:
        code += _when(name, [(_RETURN, 0, 0, _PRETEND)])
    # Its flags lie in memory, where a filter cannot look; the C library then takes the old call.
    code += _when("clone3", [(_RETURN, 0, 0, _UNKNOWN)])
    code += _when("clone", _clone(processes))
    code += _when("socket", _unless(0, _AF_UNIX) if unix_sockets else [(_RETURN, 0, 0, _REFUSE)])
    # A datagram may be sent to any address, also by one of a pair.
    code += _when("socketpair", [*_unless(0, _AF_UNIX)[:-1], *_datagram()])
    code += _when("prlimit64", _unless(0, 0))
    code += _when("ioctl", [*_if(1, _TIOCSTI), *_if(1, _TIOCLINUX), (_RETURN, 0, 0, _ALLOW)])
    if own is not None:
        for name in _SIGNALS:
            code += _when(name, [(_RETURN, 0, 0, _REFUSE)] if name == "pidfd_send_signal" else _unless(0, own))
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def install(filter_: list[Instruction]) -> None:
    """Put all threads of this process, and what it starts, behind a filter. Wants PR_SET_NO_NEW_PRIVS.

    Raises:
        OSError: the kernel refuses.
    """
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in filter_))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filter_), ctypes.addressof(packed)))
    result = syscalls.call("seccomp", ctypes.c_uint(_SET_FILTER), ctypes.c_uint(_FOR_ALL_THREADS), whole)
    if result:
        raise OSError(errno.EBUSY, "a thread has another filter", "seccomp")


def _argument(index: int) -> int:
    """Where the lower half of an argument lies."""
    return 16 + 8 * index


def _when(name: str, then: list[Instruction]) -> list[Instruction]:
    """``then``, which returns in every case, for one call; the number of the call stays loaded for the next."""
    number = syscalls.number(name)
    return [] if number is None else [(_EQUAL, 0, len(then), number), *then]


def _unless(index: int, value: int) -> list[Instruction]:
    """Refuse where an argument is not ``value``."""
    return [
        (_LOAD, 0, 0, _argument(index)),
        (_EQUAL, 1, 0, value),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _if(index: int, value: int) -> list[Instruction]:
    return [(_LOAD, 0, 0, _argument(index)), (_EQUAL, 0, 1, value), (_RETURN, 0, 0, _REFUSE)]


def _datagram() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _argument(1)),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 0, 1, _SOCK_DGRAM),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _clone(processes: bool) -> list[Instruction]:
    """Threads always; processes if they may be, in the namespaces that are there."""
    flags = [(_LOAD, 0, 0, _argument(0)), (_ANY_BIT, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _REFUSE)]
    if not processes:
        flags += [(_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _REFUSE)]
    return [*flags, (_RETURN, 0, 0, _ALLOW)]
