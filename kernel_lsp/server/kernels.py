"""The kernel files beside the sources, read when they change and not before."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.kernel_file import KernelFile


@lru_cache(maxsize=4096)
def kernel_path(source: Path, class_name: str, folder: str) -> Path:
    from kernel_lsp import kernel_file

    return kernel_file.kernel_path(source, class_name, folder)


@lru_cache(maxsize=4096)
def former_path(source: Path, class_name: str, folder: str) -> Path:
    from kernel_lsp import kernel_file

    return kernel_file.former_path(source, class_name, folder)


class Kernels:
    """Parsed headers by path. A folder without kernel files costs one ``stat`` for a whole document."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[int, frozenset[str]]] = {}
        self._files: dict[Path, tuple[tuple[int, int, int], KernelFile | None]] = {}

    def has_any(self, source: Path, folder: str) -> bool:
        """Whether there is anything in the folder of a source's kernels."""
        return bool(self._names(os.path.join(source.parent, os.path.expanduser(folder))))

    def find(self, source: Path, class_name: str, folder: str) -> tuple[Path, KernelFile] | None:
        """The kernel file of a class; None where there is none, or one that is damaged or another class's."""
        if not self.has_any(source, folder):
            return None
        path = kernel_path(source, class_name, folder)
        names = self._names(str(path.parent))
        if path.name in names:
            parsed = self.read(path)
            return (path, parsed) if parsed is not None and parsed.class_name == class_name else None
        path = former_path(source, class_name, folder)
        if path.name not in names:
            return None
        from kernel_lsp import kernel_file

        parsed = self.read(path)
        return (path, parsed) if parsed is not None and kernel_file.is_of(path, parsed, source, class_name) else None

    def read(self, path: Path) -> KernelFile | None:
        """The kernel file at a path; None where there is none that can be read."""
        try:
            stat = os.stat(path)
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._files.get(path)
        if known is None or known[0] != stamp:
            from kernel_lsp import kernel_file
            from kernel_lsp.errors import NotAKernelFile

            try:
                known = (stamp, kernel_file.read(path))
            except NotAKernelFile:
                known = (stamp, None)
            if _settled(stat.st_mtime_ns):
                self._files[path] = known
        return known[1]

    def _names(self, folder: str) -> frozenset[str]:
        try:
            stamp = os.stat(folder).st_mtime_ns
        except OSError:
            return frozenset()
        known = self._folders.get(folder)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, frozenset(os.listdir(folder)))
            except OSError:
                return frozenset()
            if _settled(stamp):
                self._folders[folder] = known
        return known[1]


def _settled(mtime_ns: int) -> bool:
    """Whether a change after this moment would show in the time stamp, whose grain is some milliseconds."""
    return time.time_ns() - mtime_ns > 50_000_000
