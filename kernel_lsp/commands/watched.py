"""The kernels under the watched paths: which there are, and the settings and class that each is validated with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp import kernel_file
from kernel_lsp.analysis import fingerprint, module_classes, orphaned, read_file
from kernel_lsp.errors import ClassNotFound, UserError
from kernel_lsp.settings import Settings
from kernel_lsp.store import database, validations
from kernel_lsp.store.validations import Validation
from kernel_lsp.watching import Stamp, Tree, stamp


@dataclass
class Kernel:
    """One kernel file as it is on disk.

    Attributes:
        source: the file of its class; None where it was not found.
        fingerprint: of the class as it is now.
        body: the hash of the kernel's body as it is now.
        text: that body.
        precision: the setting that it was asked for with.
        stale: whether its header is about the class as it was before.
        problem: why it cannot be validated as it is.
        reads: every file that this was found out from, there or not, as it was.
    """

    path: Path
    class_name: str = ""
    source: Path | None = None
    fingerprint: str = ""
    body: str = ""
    text: str = ""
    precision: str = "strict"
    stale: bool = False
    problem: UserError | None = None
    reads: dict[Path, Stamp | None] = field(default_factory=dict)

    @property
    def version(self) -> tuple[str, str, str, str]:
        """What a verdict is about. What else stands in a header, a comment or the layout leaves it as it is."""
        return self.fingerprint, self.body, self.precision, str(self.problem or "")


class Survey:
    """Finds the kernels anew after each change; files whose stamps are the same are not read again."""

    def __init__(self, paths: Iterable[Path], settings_for: Callable[[Path], Settings]) -> None:
        self._paths = list(paths)
        self._settings_for = settings_for
        self._not_kernels: dict[Path, Stamp] = {}  # files that are no kernel files
        self._candidates: set[Path] = set()  # where kernels of the source files named would be
        self.kernels: dict[Path, Kernel] = {}

    def files(self) -> set[Path]:
        """Every file that a verdict depends on, there or not."""
        return self._candidates.union(*(kernel.reads for kernel in self.kernels.values()))

    def look(self, tree: Tree) -> dict[Path, Kernel]:
        """The kernels by path; those that did not change are the same objects as before."""
        stamps: dict[Path, Stamp | None] = {**tree.further, **tree.files}
        named = [path for path in self._paths if path in tree.files]
        self._candidates = {kernel for path in named for kernel in self._kernels_of(path, tree.files[path])}
        files = {path: tree.files[path] for path in tree.files if path.suffix == ".py"}
        files |= {path: found for path in self._candidates if (found := stamp(path)) is not None}
        files = {path: found for path, found in files.items() if not (path.is_symlink() and path.resolve() in files)}
        self.kernels = {
            path: self._kernel(path, stamps) for path, found in sorted(files.items()) if self._is_kernel(path, found)
        }
        return self.kernels

    def _is_kernel(self, path: Path, found: Stamp) -> bool:
        if self._not_kernels.get(path) == found:
            return False
        if kernel_file.looks_like(path):
            self._not_kernels.pop(path, None)
            return True
        self._not_kernels[path] = found
        return False

    def _kernels_of(self, path: Path, found: Stamp) -> list[Path]:
        """Where the kernels of the classes in a source file are, or would be; none for a kernel file."""
        text = None if self._is_kernel(path, found) else read_file(path)
        if text is None:
            return []
        folder = self._settings_for(path).kernel_folder
        return [kernel_file.find_kernel(path, c.name, folder) for c in module_classes(text, path)]

    def _kernel(self, path: Path, stamps: dict[Path, Stamp | None]) -> Kernel:
        known = self.kernels.get(path)
        if known is not None and all(_stamp(file, stamps) == then for file, then in known.reads.items()):
            return known
        return read_kernel(path)


def read_kernel(path: Path) -> Kernel:
    """A kernel file and its class as they are now."""
    kernel = Kernel(path, reads={path: stamp(path)})
    try:
        parsed = kernel_file.read(path)
        kernel.class_name, kernel.body = parsed.class_name, parsed.actual_body
        kernel.text, kernel.precision = parsed.body, parsed.precision
        name = parsed.source_file
        if name:  # it may come to be in any of the folders above
            kernel.reads |= {folder / name: stamp(folder / name) for folder in path.parents}
        kernel.source = kernel_file.find_source(path, parsed)
        kernel.fingerprint = _fingerprint(path, kernel.source, parsed.class_name, kernel.reads)
        kernel.stale = kernel.fingerprint != parsed.fingerprint
    except UserError as error:
        kernel.problem = error
    return kernel


def _fingerprint(kernel: Path, source: Path, class_name: str, reads: dict[Path, Stamp | None]) -> str:
    """The class's fingerprint; each file on the way goes into ``reads``.

    Raises:
        SyntaxInvalid, KernelOrphaned: a syntax error hides the class, or the source has none of that name.
    """

    def read(file: Path) -> str | None:
        reads[file] = stamp(file)
        return read_file(file)

    text = read(source) or ""
    try:
        return fingerprint(text, source, class_name, read)
    except ClassNotFound:
        raise orphaned(text, source, class_name, relative(kernel), relative(source)) from None


def _stamp(file: Path, stamps: dict[Path, Stamp | None]) -> Stamp | None:
    if file not in stamps:
        stamps[file] = stamp(file)
    return stamps[file]


def find_validation(kernel: Kernel, settings: Settings) -> Validation | None:
    """What this machine found for exactly this class and body.

    Raises:
        StoreUnusable: it cannot be read.
    """
    if kernel.problem is not None or not kernel.fingerprint:
        return None
    path = database.path_for(settings.store, settings.root)
    command = settings.interpreter_command()
    about = kernel.fingerprint, kernel.body, settings.bounds
    return validations.look_up(command, settings.device, *about, path, kernel.precision, kernel.text).valid


@functools.cache
def here() -> Path:
    """The current folder, as it was at the start: it may be deleted."""
    return Path.cwd()


def relative(path: Path) -> str:
    """A path as it is shown."""
    return str(path.relative_to(here())) if path.is_relative_to(here()) else str(path)
