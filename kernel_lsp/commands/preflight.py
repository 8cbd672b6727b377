"""Reports once, before any work, what would fail for every class: settings, the kernel folder, the device, generators."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_lsp import generators
from kernel_lsp.errors import FileNotWritten, InterpreterMissing, KernelFolderIsFile, NoSuchDevice, UserError
from kernel_lsp.jobs import Jobs
from kernel_lsp.settings import Settings


def check_settings(sources: Sequence[Path], settings_for: Callable[[Path], Settings], *, write: bool) -> None:
    """Look at what the settings name for the source files. ``write``: kernel files are written beside them.

    Raises:
        SettingInvalid, GeneratorUnknown: a setting has a value that does not go.
        KernelFolderIsFile, FileNotWritten: a folder for kernel files cannot be written, or made.
    """
    folders: dict[Path, None] = {}
    for source in sources:
        settings = settings_for(source)
        for name in settings.generators:
            generators.find(name)
        folders[source.parent / os.path.expanduser(settings.kernel_folder)] = None
    for folder in folders if write else ():
        check_folder(folder)


def check_folder(folder: Path) -> None:
    """Check that a kernel file can be written to ``folder``, which need not be there yet.

    Raises:
        KernelFolderIsFile: the folder, or one above it, is a file.
        FileNotWritten: the folder cannot be written, or made.
    """
    there = folder
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    if there.exists() and not there.is_dir():
        raise KernelFolderIsFile(path=str(there), folder=str(folder))
    if not os.access(there, os.W_OK | os.X_OK):
        if hasattr(os, "statvfs") and os.statvfs(there).f_flag & os.ST_RDONLY:
            number, detail = errno.EROFS, f"{'it' if there == folder else there} is on a read-only file system"
        else:
            number, detail = errno.EACCES, "no permission" if there == folder else f"no permission in {there}"
        raise FileNotWritten(path=str(folder), detail=detail, number=number)


async def check_device(jobs: Jobs, source: Path, settings: Settings) -> None:
    """Ask the worker whether it sees the GPU that the settings name. One of which that is not known is left to the job.

    Raises:
        NoSuchDevice: it does not.
    """
    wanted = settings.device
    if not wanted.startswith("cuda"):
        return
    try:
        hello = await jobs.hello(source)
    except InterpreterMissing:
        raise
    except UserError:  # the job says it, with what the class is
        return
    count = sum(device["kind"] == "cuda" for device in hello.get("devices") or [])
    if int(wanted.partition(":")[2] or 0) < count:
        return
    interpreter = str(hello.get("interpreter") or settings.interpreter_command()[0])
    there = f"it sees {count} CUDA GPU{'' if count == 1 else 's'}"
    raise NoSuchDevice(device=wanted, interpreter=interpreter, detail=there)
