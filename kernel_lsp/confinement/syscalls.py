"""Calling the kernel where Python has no function for it, and the numbers of its calls on x86_64 and aarch64."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from typing import Any

#: what the kernel calls the machine (AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64), by Python's name for it
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: name → its number on x86_64 and on aarch64, None where the machine lacks it (asm/unistd_64.h, asm-generic/unistd.h)
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # sockets
    "socket": (41, 198),
    "socketpair": (53, 199),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    # new processes
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "memfd_create": (319, 279),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # the keyring
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "unshare": (272, 97),
    "setns": (308, 268),
    # the kernel itself
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "syslog": (103, 116),
    "fanotify_init": (300, 262),
    # what a file is, beside what it holds: Landlock does not look at these
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    # memory and queues that processes of one user share by name
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # what the layers are made with
    "ioctl": (16, 29),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "capset": (126, 91),
}


def known() -> bool:
    """Whether the numbers are those of this machine: Linux, 64 bits, one of the two."""
    return sys.platform == "linux" and platform.machine() in ARCHITECTURES and sys.maxsize > 1 << 32


def number(name: str) -> int | None:
    """The number of a call on this machine; None where it has none."""
    return _NUMBERS[name][list(ARCHITECTURES).index(platform.machine())]


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def call(name: str, *arguments: Any) -> int:
    """What the call returns.

    Raises:
        OSError: the call fails; with its errno.
    """
    result = _libc().syscall(ctypes.c_long(number(name) or -1), *arguments)
    if result < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), name)
    return int(result)


def prctl(option: int, *arguments: int) -> int:
    """``prctl`` with as many zeros as it wants.

    Raises:
        OSError: the call fails; with its errno.
    """
    result = _libc().prctl(option, *(ctypes.c_ulong(n) for n in [*arguments, 0, 0, 0, 0][:4]))
    if result < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), "prctl")
    return int(result)
