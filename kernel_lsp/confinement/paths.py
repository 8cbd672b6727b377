"""Which files torch, triton, the GPU's driver and the compiler need, and with which rights."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
from collections.abc import Iterable, Iterator

from kernel_lsp.confinement import landlock

Rule = tuple[str, int]

_SYSTEM = (
    *("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include", "/usr/share", "/usr/local", "/usr/src"),
    *("/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store", "/run/opengl-driver", "/sys"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone", "/etc/os-release"),
    *(
        "/etc/OpenCL",
        "/etc/vulkan",
        "/etc/locale.alias",
        "/etc/mime.types",
        "/etc/debian_version",
        "/etc/redhat-release",
    ),
)
_PROC = ("cpuinfo", "meminfo", "stat", "version", "filesystems", "devices", "modules", "loadavg", "sys", "driver")
_DEVICES = (
    "/dev/nvidia*",
    "/dev/dxg",
    "/dev/kfd",
    "/dev/dri",
    "/dev/nvhost*",
    "/dev/nvmap",
    "/dev/nvgpu",
    "/dev/nvsciipc",
)
#: folders, as environment variables name them, with libraries and programs
_NAMED = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "PYTHONPATH",
    "CPATH",
    "LIBRARY_PATH",
    "TRITON_HOME",
)
_SHARED_PROGRAMS = frozenset(["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"])
_COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "clang++", "as", "ld", "ld.bfd", "ld.gold", "ld.lld", "ldconfig")


def rules(folder: str, sources: Iterable[str], gpu: bool, compiles: bool, shared_memory: bool) -> Iterator[Rule]:
    """(path, rights) for a candidate's process: it writes in ``folder`` alone and reads ``sources`` beside what all need.

    Paths are as programs spell them: with a root of its own (namespace.py) the links in them have to be there, too.
    ``compiles``: it may start the compiler's programs. ``shared_memory``: the driver needs /dev/shm to share the GPU's memory.
    """
    yield folder, landlock.OWN
    for path in (*_SYSTEM, *_python(), *_named(), *_mapped(), *glob.glob("/etc/nvidia*"), *sources):
        yield path, landlock.READ
    for name in _PROC:
        yield f"/proc/{name}", landlock.READ
    # The driver names its threads there. What else this process may write of its own does not reach beyond it.
    yield "/proc/self", landlock.READ
    yield "/proc/self/task", landlock.CHANGE if gpu else landlock.READ
    for device in ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"):
        yield device, landlock.CHANGE
    if gpu:
        for path in (device for pattern in _DEVICES for device in glob.glob(pattern)):
            yield path, landlock.DEVICE
    if shared_memory:
        yield "/dev/shm", landlock.OWN
    if compiles:
        for path in _programs():
            yield path, landlock.EXECUTE


def of_project(path: str, project: str | None, root: str) -> list[str]:
    """What may be read of the user's own: the project of the file at ``path``, and the folder its imports start from.

    Where that is the home folder, or one around it, only the Python files and packages in it.
    """
    found = []
    for folder in {os.path.abspath(f) for f in (project, root, os.path.dirname(os.path.abspath(path))) if f}:
        found += [folder] if _narrow(os.path.realpath(folder)) else list(_python_of(folder))
    return [*found, *_caches()]


def _narrow(folder: str) -> bool:
    """Whether a folder is neither the home folder nor one around it."""
    home = os.path.realpath(os.path.expanduser("~"))
    return os.path.commonpath([home, folder]) != folder and folder not in ("/", "/home", "/tmp", "/var", "/etc")


def _python_of(folder: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            package = os.path.exists(os.path.join(entry.path, "__init__.py"))
            if not entry.name.startswith(".") and (entry.name.endswith(".py") or package):
                yield entry.path


def _caches() -> list[str]:
    """Weights that modules load when they are constructed."""
    home = os.path.expanduser("~/.cache")
    hub = os.environ.get("HF_HUB_CACHE") or os.path.join(os.environ.get("HF_HOME") or f"{home}/huggingface", "hub")
    return [hub, os.environ.get("TORCH_HOME") or f"{home}/torch"]


def _python() -> list[str]:
    """The interpreter's libraries and everything that it imports from, without its programs."""
    found = [path for path in sys.path if path and os.path.exists(path) and _narrow(os.path.realpath(path))]
    found += [target for path in found for target in _linked(path)]
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        found += [os.path.join(prefix, part) for part in ("lib", "lib64", "include", "share", "nvvm", "targets", "ssl")]
        found.append(os.path.join(prefix, "pyvenv.cfg"))
    found.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name, module in list(sys.modules.items()):
        if name.startswith("__editable__"):  # how setuptools installs a folder in place
            found += [str(path) for path in getattr(module, "MAPPING", {}).values()]
    return found


def _linked(folder: str) -> Iterator[str]:
    """The links in a folder: packages may be installed as links to where they are kept."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_symlink() and _narrow(os.path.realpath(entry.path)):
                yield entry.path


def _named() -> list[str]:
    folders = [f for name in _NAMED for f in os.environ.get(name, "").split(os.pathsep)]
    files = [os.environ.get(name, "") for name in ("LD_PRELOAD", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH")]
    return [f for f in (*folders, *files) if f and os.path.isabs(f) and _narrow(os.path.realpath(f))]


def _mapped() -> set[str]:
    """The folders of the libraries that this process has loaded, wherever this system keeps them."""
    found = set()
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file:
            path = line[73:].rstrip("\n")
            if path.startswith("/") and ".so" in path and _narrow(os.path.dirname(path)):
                found.add(os.path.dirname(path))
    return found


def _programs() -> set[str]:
    """The compiler's programs: triton's own, the C compiler with what it starts, and the loader that starts them."""
    found = {os.environ.get(name, "").partition(" ")[0] for name in ("CC", "CXX", "TRITON_PTXAS_PATH")}
    found |= {shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "" for name in _COMPILERS}
    triton = getattr(sys.modules.get("triton"), "__file__", None)
    if triton:
        found |= set(glob.glob(os.path.join(os.path.dirname(triton), "backends", "*", "bin", "*")))
    found |= set(glob.glob("/usr/lib/gcc") + glob.glob("/usr/libexec/gcc") + glob.glob("/usr/lib/llvm*/bin"))
    found |= set(glob.glob("/lib*/ld-*.so*") + glob.glob("/lib/*/ld-*.so*") + glob.glob("/usr/lib*/ld-*.so*"))
    found |= set(glob.glob(os.path.join(sys.prefix, "libexec", "gcc")))
    found = {path for path in found if path and os.path.isabs(path) and os.path.exists(path)}
    scripts = {os.path.realpath(path): shell for path in found if (shell := _interpreter(path))}
    # A compiler behind a script is what lies beside it.
    folders = {os.path.dirname(path) for path in scripts} - _SHARED_PROGRAMS
    return found | set(scripts.values()) | folders


def _interpreter(path: str) -> str:
    """What runs a program that is a script: some systems wrap their compiler in one."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if file.read(2) == b"#!":
            words = file.readline(200).decode("utf-8", "replace").split()
            return words[0] if words else ""
    return ""
