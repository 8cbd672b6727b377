"""The kernel files beside the sources, read when they change and not before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .time_stamps import settled

if TYPE_CHECKING:
    from kernel_lsp.kernel_file import KernelFile


class Kernels:
    """Parsed headers by path. A folder without kernel files costs one ``stat`` for a whole document."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[int, frozenset[str]]] = {}
        self._files: dict[Path, tuple[tuple[int, int, int], KernelFile | None]] = {}

    def has_any(self, source: Path, folder: str) -> bool:
        """Whether there is anything in the folder of a source's kernels."""
        return bool(self._names(os.path.join(source.parent, os.path.expanduser(folder))))

    def find(self, source: Path, class_name: str, folder: str) -> tuple[Path, KernelFile] | None:
        """The kernel file of a class; None where there is none, or it is damaged."""
        names = self._names(os.path.join(source.parent, os.path.expanduser(folder)))
        if not names:
            return None
        from kernel_lsp import kernel_file

        return kernel_file.existing(
            source, class_name, folder, lambda path: self.read(path) if path.name in names else None
        )

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
            if settled(stat.st_mtime_ns):
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
            if settled(stamp):
                self._folders[folder] = known
        return known[1]
