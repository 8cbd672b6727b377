"""A file of the workspace: its text by position, what binds each of its names, and where the workspace ends."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import re
import sys
import sysconfig
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

from kernel_lsp.slicing.scopes import Import, bindings_of, bound_by

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
#: imported, never copied, also where they were built in a folder of the workspace
_NEVER = frozenset({"torch", "triton", "numpy", "kernel_lsp"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_SPACE = r"(?:\s|\\\n)+"


class Workspace:
    """Which modules belong to the user: those below the folder of the project that ``path`` is in."""

    def __init__(self, path: str, import_root: str) -> None:
        self.root = _project(os.path.realpath(path), os.path.realpath(import_root))
        self.import_root = import_root
        self._library = [os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")]
        self._files: dict[str, File | None] = {}

    def holds(self, module: ModuleType | None) -> bool:
        """Whether ``module`` is the user's own Python source."""
        if module is None or module.__name__.partition(".")[0] in _NEVER:
            return False
        path = os.path.realpath(getattr(module, "__file__", None) or "")
        if not path.endswith(".py"):  # a namespace package is the user's where its folder is
            folders = [os.path.realpath(p) for p in getattr(module, "__path__", [])]
            return bool(folders) and not path.strip(os.sep) and all(self._below(folder) for folder in folders)
        return self._below(path)

    def _below(self, path: str) -> bool:
        if not (path + os.sep).startswith(self.root.rstrip(os.sep) + os.sep):
            return False
        inside = path[len(self.root) :].split(os.sep)
        return _INSTALLED.isdisjoint(inside) and not any(path.startswith(folder) for folder in self._library)

    def file(self, module: ModuleType) -> File | None:
        """The source of ``module``, also of an installed one; None where there is none."""
        name = module.__name__
        if name not in self._files:
            self._files[name] = None
            path = getattr(module, "__file__", None)
            if path and path.endswith(".py"):
                with suppress(OSError, SyntaxError, ValueError):
                    self._files[name] = File(module, path)
        return self._files[name]


def _project(path: str, import_root: str) -> str:
    """The nearest folder around ``import_root`` that looks like a project's, else ``import_root`` itself."""
    folder = import_root
    while True:
        if any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return import_root
        folder = parent


@dataclass(frozen=True)
class Binding:
    """``statement`` binds a name. ``top``: the statement of the file it is in; ``alone``: it can be taken out of that."""

    statement: ast.stmt
    top: ast.stmt
    alone: bool
    alias: ast.alias | None = None


class File:
    """One module's source. Positions are the syntax tree's, whose columns count bytes of UTF-8."""

    def __init__(self, module: ModuleType, path: str) -> None:
        self.module = module
        self.name = module.__name__
        self.path = path
        with tokenize.open(path) as file:
            text = file.read()
        self.tree = ast.parse(text, path)
        self.data = text.encode("utf-8", "surrogatepass")
        self._starts = [0]
        for line in self.data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.bindings: dict[str, list[Binding]] = {}
        self.stars: list[ast.ImportFrom] = []
        self.mutators: dict[str, list[ast.stmt]] = {}
        self.tops: dict[ast.stmt, int] = {}
        for index, top in enumerate(self.tree.body):
            self.tops[top] = index
            self._index(top, top, alone=True)
        self.postponed = any(
            isinstance(s, ast.ImportFrom) and s.module == "__future__" and any(a.name == "annotations" for a in s.names)
            for s in self.tree.body
        )

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node of the syntax tree but the module → the node around it."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def _index(self, node: ast.stmt, top: ast.stmt, alone: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                self.stars.append(node)
            elif getattr(node, "module", "") != "__future__":
                for alias in node.names:
                    self._bind(bound_by(alias, node), Binding(node, top, alone, alias))
            return
        if isinstance(node, ast.If | ast.Try | ast.TryStar):
            for statement in live(node):
                self._index(statement, top, alone)
            return
        if isinstance(node, ast.With | ast.AsyncWith | ast.For | ast.AsyncFor | ast.While | ast.Match):
            alone = False
        for name in bindings_of(node):
            self._bind(name, Binding(node, top, alone))
        for name in _mutates(node):
            self.mutators.setdefault(name, []).append(node if alone and node is top else top)

    def _bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def offset(self, line: int, column: int) -> int:
        """The place in the file's bytes of a 1-based line and a column."""
        return self._starts[line - 1] + column

    def start(self, node: ast.AST) -> int:
        """The byte at which a node begins, decorators left out."""
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """The byte after a node's last."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def name_span(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[int, int]:
        """Where the name stands in ``class Name`` or ``def name``."""
        start = self.start(node)
        keyword = re.compile(rf"(?:async{_SPACE})?(?:def|class){_SPACE}".encode()).match(self.data, start)
        assert keyword is not None
        name = re.compile(rb"[^\s(:\[\\]+").match(self.data, keyword.end())  # beyond ASCII, too
        assert name is not None
        return name.span()

    def span(self, node: ast.stmt) -> tuple[int, int]:
        """The statement with its decorators, the comment lines directly above and the comment behind it."""
        decorators = getattr(node, "decorator_list", [])
        line = min([node.lineno, *(d.lineno for d in decorators)])
        start = self.start(node) if not decorators else self._starts[line - 1]
        if self.data[self._starts[line - 1] : start].strip():
            return start, self.end(node)  # another statement stands before it on the line
        indent = node.col_offset
        start = self._starts[line - 1]
        while line > 1:
            above = self.data[self._starts[line - 2] : self._starts[line - 1]]
            bare = above.lstrip(b" \t")
            if not bare.startswith(b"#") or len(above) - len(bare) != indent or bare.startswith(b"#!"):
                break
            if line - 1 <= 2 and re.match(rb"#.*coding[:=]", bare):
                break
            line -= 1
            start = self._starts[line - 1]
        end = self.end(node)
        rest = self.data[end:].split(b"\n", 1)[0]
        return start, end + len(rest) if not rest.strip() or rest.lstrip().startswith(b"#") else end

    def lines_of(self, node: ast.stmt) -> int:
        """How many lines a statement has."""
        return (node.end_lineno or node.lineno) - node.lineno + 1

    def absolute(self, statement: ast.ImportFrom) -> str:
        """The module that ``from …`` names, without leading dots."""
        if not statement.level:
            return statement.module or ""
        package = getattr(self.module, "__package__", None) or (
            self.name if hasattr(self.module, "__path__") else self.name.rpartition(".")[0]
        )
        return importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)

    def imports(self, statement: Import) -> list[ModuleType]:
        """The modules that an import loads, as far as they are loaded."""
        names: list[str] = []
        if isinstance(statement, ast.ImportFrom):
            with suppress(ImportError):
                base = self.absolute(statement)
                names = [base, *(f"{base}.{alias.name}" for alias in statement.names)]
        else:
            names = [alias.name for alias in statement.names]
        return [m for name in names if (m := loaded(name)) is not None]


def loaded(name: str, load: bool = False) -> ModuleType | None:
    """The module ``name`` from ``sys.modules``; ``load``: import it if it is not there."""
    found = sys.modules.get(name)
    if found is None and load and name:
        with suppress(Exception, SystemExit):
            found = importlib.import_module(name)
    return found if isinstance(found, ModuleType) else None


def live(node: ast.If | ast.Try | ast.TryStar) -> Iterator[ast.stmt]:
    """The statements inside that may have run when the module was imported."""
    if isinstance(node, ast.If):
        if not _guard(node.test):
            yield from node.body
        yield from node.orelse
        return
    yield from node.body
    for handler in node.handlers:
        yield from handler.body
    yield from node.orelse
    yield from node.finalbody


def _guard(test: ast.expr) -> bool:
    """``__name__ == "__main__"`` or ``TYPE_CHECKING``: false when a module is imported."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name):
        return test.left.id == "__name__"
    return ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING"


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__":`` without an ``else``."""
    return isinstance(node, ast.If) and not node.orelse and _guard(node.test)


def _mutates(node: ast.stmt) -> set[str]:
    """The names of the module whose objects a statement at its top changes: ``X.append(1)``, ``X["k"] = v``, ``@X.add``."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        targets = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    roots = set()
    for target in targets:
        inner: ast.expr = target
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Name) and inner is not target:
            roots.add(inner.id)
    return roots
