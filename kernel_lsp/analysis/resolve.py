"""Where a name comes from: through imports, re-exports, aliases and star imports, across the workspace's files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from .outline import ClassOutline, Import, Outline, outline
from .syntax import Source

Read = Callable[[Path], "str | None"]

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_NOT_MODULES = frozenset({"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"})
_ELSEWHERE = frozenset(  # modules that other packages derive from nn.Module, and users derive from
    {
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "torch.jit.ScriptModule",
        "torch.fx.GraphModule",
    }
)


def read_file(path: Path) -> str | None:
    """The text of a file, None where there is none. Line ends are kept as they are."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            return file.read()
    except OSError:
        return None


@lru_cache(maxsize=128)
def outline_of(text: str) -> Outline:
    """The outline of a text, kept for the files that bases are looked up in."""
    return outline(Source(text))


def is_torch_module(qualified: str) -> bool:
    """Whether a fully qualified name is torch.nn.Module or one of the classes torch derives from it."""
    if qualified in _ELSEWHERE:
        return True
    package, _, name = qualified.rpartition(".")
    if not name.lstrip("_")[:1].isupper() or name in _NOT_MODULES:
        return False
    return package == "torch.nn" or package.startswith(("torch.nn.modules", "torch.nn.parallel", "torch.ao.nn"))


def module_file(module: str, path: Path, read: Read) -> Path | None:
    """The workspace file that ``module`` (with leading dots, as written in ``path``) names; None if there is none."""
    bare = module.lstrip(".")
    dots = len(module) - len(bare)
    parts = bare.split(".") if bare else []
    if dots:
        folder = path.parent
        for _ in range(dots - 1):
            folder = folder.parent
        return _in_folder(folder, parts, read)
    if not parts or parts[0] in ("torch", "typing", "math", "os", "sys", "__future__"):
        return None
    for root in _roots(path.parent):
        found = _in_folder(root, parts, read)
        if found is not None:
            return found
    return None


def _in_folder(folder: Path, parts: list[str], read: Read) -> Path | None:
    base = folder.joinpath(*parts)
    candidates = [base / "__init__.py"]
    if parts:
        candidates.append(base.parent / f"{base.name}.py")
    return next((c for c in candidates if read(c) is not None), None)


def _roots(folder: Path) -> Iterator[Path]:
    """Folders that absolute imports may start from, the likeliest first: the file's own, then upwards with src/.

    Ends at the project's root (the folder with pyproject.toml, setup.py or .git).
    """
    for _ in range(12):
        yield folder
        if _is_folder(folder / "src"):
            yield folder / "src"
        if any(os.path.exists(folder / marker) for marker in _MARKERS) or folder.parent == folder:
            return
        folder = folder.parent


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)


class Resolver:
    """Follows names through files. One per question: it remembers every file that it read."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._outlines: dict[Path, Outline | None] = {}
        self._files: dict[tuple[str, Path], Path | None] = {}
        self._texts: dict[Path, str | None] = {}
        self._modules: set[tuple[Path, str]] = set()  # names known to mean a module class

    def add(self, path: Path, found: Outline) -> None:
        """Use this outline for ``path`` (the document as the editor has it)."""
        self._outlines[path] = found

    def read(self, path: Path) -> str | None:
        """A file's text, None where it cannot be read."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def outline(self, path: Path) -> Outline | None:
        """The outline of a file, kept; None where the file cannot be read."""
        if path not in self._outlines:
            text = self.read(path)
            self._outlines[path] = None if text is None else outline_of(text)
        return self._outlines[path]

    def file(self, module: str, path: Path) -> Path | None:
        """The file that ``module`` is imported from in the file ``path``; None where it is not in the workspace."""
        key = (module, path if module.startswith(".") else path.parent)
        if key not in self._files:
            self._files[key] = module_file(module, path, self.read)
        return self._files[key]

    def names_module(self, path: Path, name: str) -> bool:
        """Whether a (dotted) name in the file ``path`` is seen to be a class that derives from torch.nn.Module."""
        return self._name_is_module(path, name, frozenset())

    def is_module(self, path: Path, c: ClassOutline, seen: frozenset[tuple[Path, str]] = frozenset()) -> bool:
        """Whether a class derives from torch.nn.Module, through however many files."""
        if "." not in c.name and any((path, base) in self._modules for base in c.bases):
            return True
        key = (path, c.name)
        if key in seen:
            return False
        return any(self._base_is_module(path, c, base, seen | {key}) for base in c.bases)

    def _base_is_module(self, path: Path, c: ClassOutline, base: str, seen: frozenset[tuple[Path, str]]) -> bool:
        scope = c.name.split(".")[:-1]
        return any(
            self._name_is_module(path, ".".join([*scope[:n], base]), seen) for n in range(len(scope), 0, -1)
        ) or (self._name_is_module(path, base, seen))

    def _name_is_module(self, path: Path, name: str, seen: frozenset[tuple[Path, str]]) -> bool:
        if (path, name) in self._modules:
            return True
        if not self._looks_up_module(path, name, seen):
            return False
        self._modules.add((path, name))
        return True

    def _looks_up_module(self, path: Path, name: str, seen: frozenset[tuple[Path, str]]) -> bool:
        found = self.outline(path)
        if found is None or (path, "=" + name) in seen:
            return False
        seen = seen | {(path, "=" + name)}
        same = [c for c in found.classes if c.name == name]
        if same:
            return any(self.is_module(path, c, seen) for c in same)
        head, _, rest = name.partition(".")
        if head in found.aliases:
            return self._name_is_module(path, _join(found.aliases[head], rest), seen)
        for target in found.imports.get(head, []):
            if self._import_is_module(path, target, head, rest, seen):
                return True
        for module in found.stars:
            if is_torch_module(f"{module}.{name}"):
                return True
            file = self.file(module, path)
            if file is not None and self._name_is_module(file, name, seen):
                return True
        return False

    def _import_is_module(
        self, path: Path, target: Import, head: str, rest: str, seen: frozenset[tuple[Path, str]]
    ) -> bool:
        if is_torch_module(qualified(target, head, rest)):
            return True
        for file, name in self.places(path, target, head, rest):
            if name and self._name_is_module(file, name, seen):
                return True
        return False

    def places(self, path: Path, target: Import, head: str, rest: str) -> Iterator[tuple[Path, str]]:
        """The (file, name in it) that ``head.rest`` may mean, ``head`` being bound by the import ``target`` in ``path``.

        An empty name means the file as a whole.
        """
        if target.name is not None:
            file = self.file(target.module, path)
            if file is not None:
                yield file, _join(target.name, rest)
            chain = _join(target.name, rest)
            base = target.module if target.module.endswith(".") else target.module + "."
        elif target.module.split(".")[0] == head and "." in target.module:
            chain, base = _join(head, rest), ""  # import a.b, then a.b.C: as much of the chain as is a module
        else:
            chain, base = _join(target.module, rest), ""
        parts = chain.split(".")
        for n in range(len(parts), 0, -1):
            file = self.file(base + ".".join(parts[:n]), path)
            if file is not None:
                yield file, ".".join(parts[n:])
                return


def qualified(target: Import, head: str, rest: str) -> str:
    """The full dotted name of ``head.rest``, ``head`` being bound by ``target``."""
    if target.name is not None:
        return _join(f"{target.module}.{target.name}", rest)
    if target.module.split(".")[0] == head:
        return _join(head, rest)
    return _join(target.module, rest)


def _join(head: str, rest: str) -> str:
    return f"{head}.{rest}" if rest else head
