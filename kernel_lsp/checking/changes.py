"""Which kernels changed since a commit: their bodies, or their classes with all that these reach in the repository."""

from __future__ import annotations

import os
from pathlib import Path

from kernel_lsp import kernel_file
from kernel_lsp.analysis import fingerprint, read_file
from kernel_lsp.checking import git
from kernel_lsp.errors import ClassNotFound, NotAKernelFile, UserError


def changed_since(files: list[Path], ref: str) -> list[Path]:
    """The kernel files whose body or class changed since a commit, in the order given.

    A kernel of which that cannot be told counts as changed: it is new, cannot be read, its class is not found, or it
    reaches a submodule that changed.

    Raises:
        UserError: there is no repository, no such commit, or git fails.
    """
    trees = _Trees(ref)
    return [file for file in files if trees.of(file).is_changed(Path(os.path.abspath(file)))]


class _Trees:
    """The repositories that files lie in, each as it was at ``ref``."""

    def __init__(self, ref: str) -> None:
        self._ref = ref
        self._here = git.find_root(Path.cwd())
        self._roots: dict[Path, Path] = {}
        self._trees: dict[Path, Tree] = {}

    def of(self, file: Path) -> Tree:
        """The repository of the current folder where it holds the file, as a submodule's too; else the file's own."""
        folder = Path(os.path.realpath(file)).parent
        if folder not in self._roots:
            inside = self._here is not None and folder.is_relative_to(os.path.realpath(self._here))
            self._roots[folder] = self._here if inside and self._here is not None else git.root_of(folder, self._ref)
        root = self._roots[folder]
        if root not in self._trees:
            self._trees[root] = Tree(root, self._ref)
        return self._trees[root]


class Tree:
    """The files of a repository as they were in a commit."""

    def __init__(self, root: Path, ref: str) -> None:
        self._root = Path(os.path.realpath(root))
        commit = git.resolve(root, ref)
        # Nothing was committed yet: everything is new.
        self._files = git.tree(root, commit) if commit is not None else {}
        self._changes = git.changes(root, commit) if commit is not None else git.Changes(frozenset(), {})
        self._submodules = [path + "/" for path, name in self._files.items() if not name]
        self._texts: dict[str, str | None] = {}
        self._unknown = False

    def is_changed(self, kernel: Path) -> bool:
        """Whether the body of a kernel file, or its class, is another one than in the commit."""
        try:
            now = kernel_file.read(kernel)
            source = kernel_file.find_source(kernel, now)
        except UserError:
            return True
        self._unknown = False
        then_kernel, then_source = self._former(kernel), self._former(source)
        texts = self.read(then_kernel), self.read(then_source), read_file(source)
        if texts[0] is None or texts[1] is None or texts[2] is None or not self._holds(source):
            return True
        try:
            then = kernel_file.parse(texts[0], then_kernel)
            if (then.actual_body, then.class_name) != (now.actual_body, now.class_name):
                return True
            before = fingerprint(texts[1], then_source, now.class_name, self.read)
            after = fingerprint(texts[2], source, now.class_name)
        except (NotAKernelFile, ClassNotFound):
            return True
        return before != after or self._unknown

    def read(self, path: Path) -> str | None:
        """The text of a file as it was; None where there was none. Outside the repository: as it is."""
        name = self._name(path)
        if name is None:
            return read_file(path)
        if name not in self._texts:
            self._texts[name] = self._text(path, name)
        elif self._in_changed_submodule(name):
            self._unknown = True
        return self._texts[name]

    def _text(self, path: Path, name: str) -> str | None:
        if any(name.startswith(folder) for folder in self._submodules):
            self._unknown = self._unknown or self._in_changed_submodule(name)
            return read_file(path)
        contents = self._files.get(name)
        if contents is None:
            return None
        if name not in self._changes.files:
            return read_file(path)  # the same, without a process
        return git.contents(self._root, contents).decode("utf-8-sig", "replace")

    def _in_changed_submodule(self, name: str) -> bool:
        return any(name.startswith(part) for part in self._submodules if part[:-1] in self._changes.files)

    def _holds(self, path: Path) -> bool:
        return self._name(path) is not None

    def _former(self, path: Path) -> Path:
        """The path under which a file was in the commit, as far as git finds it renamed."""
        old = self._changes.renamed.get(self._name(path) or "")
        return self._root / old if old is not None else path

    def _name(self, path: Path) -> str | None:
        """A path relative to the root, as git writes it; None outside."""
        real = Path(os.path.realpath(path))
        return real.relative_to(self._root).as_posix() if real.is_relative_to(self._root) else None
