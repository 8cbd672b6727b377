"""What a name in a file stands for, followed through imports by the objects that are there and by the syntax."""

from __future__ import annotations

import ast
import builtins
import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kernel_lsp.slicing.files import Binding, File, Workspace, loaded
from kernel_lsp.slicing.literals import literal
from kernel_lsp.slicing.scopes import Import

_MISSING = object()


@dataclass(frozen=True, eq=False)
class Defined:
    """Statements of a file bind ``name`` there; several where each adds to it."""

    file: File
    name: str
    statements: tuple[Binding, ...]

    @property
    def one(self) -> ast.stmt:
        """The last of the statements."""
        return self.statements[-1].statement


@dataclass(frozen=True)
class Imported:
    """Something from outside the workspace: ``from module import name``, or ``import module`` where name is None.

    ``bound``: the name it was given; empty where ``import a.b`` binds ``a``.
    """

    module: str
    name: str | None
    bound: str


@dataclass(frozen=True)
class Made:
    """A name that no statement binds (a loop over ``globals()``, say), with a value that can be written down."""

    file: File
    name: str
    value: str


Resolved = Defined | Imported | Made | ModuleType | None


class Resolver:
    """Follows the names of a workspace's files to the statements that bind them, across its modules."""

    def __init__(self, workspace: Workspace, packages: frozenset[str] = frozenset()) -> None:
        """``packages``: installed modules that are sliced as if they were the workspace's."""
        self.workspace = workspace
        self.packages = packages

    def ours(self, module: ModuleType | None) -> bool:
        """Whether a module is copied into a slice: of the workspace, or of ``packages``."""
        return module is not None and (self.workspace.holds(module) or module.__name__ in self.packages)

    def file(self, module: ModuleType) -> File | None:
        """The module's file if it is copied, else None."""
        return self.workspace.file(module) if self.ours(module) else None

    def is_ours(self, file: File, statement: Import, alias: ast.alias) -> bool:
        """Whether a name that is imported inside a function is of what is copied."""
        if isinstance(statement, ast.ImportFrom):
            try:
                base = file.absolute(statement)
            except ImportError:
                return False
            return self.ours(loaded(base, load=bool(statement.level) or self._near(base)))
        return self.ours(loaded(alias.name, load=self._near(alias.name)))

    def _near(self, name: str) -> bool:
        """Whether ``name`` is of a package of the workspace that is loaded already: it can be loaded without harm."""
        return self.ours(loaded(name.partition(".")[0])) and "." in name

    def name(self, file: File, name: str, seen: tuple[tuple[str, str], ...] = ()) -> Resolved:
        """What ``name``, a name of ``file``'s module, stands for; None for a builtin and for what is not there."""
        if (file.name, name) in seen:
            return None
        seen = (*seen, (file.name, name))
        namespace = vars(file.module)
        value = namespace.get(name, _MISSING)
        bindings = file.bindings.get(name)
        if not bindings:
            return self._unbound(file, name, value, seen)
        chosen = self._choose(file, bindings, value)
        last = chosen[-1]
        if last.alias is not None and isinstance(last.statement, ast.Import | ast.ImportFrom):
            return self.alias(file, last.statement, last.alias, seen)
        return Defined(file, name, tuple(chosen))

    def alias(
        self, file: File, statement: Import, alias: ast.alias, seen: tuple[tuple[str, str], ...] = ()
    ) -> Resolved:
        """What one name of an import statement stands for."""
        if isinstance(statement, ast.Import):
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            module = loaded(name)
            if self.ours(module):
                return module
            return Imported(alias.name, None, alias.asname or "")
        base = file.absolute(statement)
        source = loaded(base)
        submodule = loaded(f"{base}.{alias.name}")
        found = getattr(source, alias.name, submodule)
        if isinstance(found, ModuleType) and self.ours(found):
            return found
        if source is not None and self.ours(source):
            resolved = self._member(source, alias.name, found, seen)
            if resolved is not None:
                return resolved
        return Imported(base, alias.name, alias.asname or alias.name)

    def member(self, module: ModuleType, name: str) -> Resolved:
        """``module.name`` for a module of the workspace."""
        return self._member(module, name, getattr(module, name, _MISSING), ())

    def _member(self, module: ModuleType, name: str, value: Any, seen: tuple[tuple[str, str], ...]) -> Resolved:
        if isinstance(value, ModuleType) and self.ours(value):
            return value
        file = self.file(module)
        resolved = self.name(file, name, seen) if file is not None else None
        return resolved if resolved is not None else self.by_object(value)

    def by_object(self, value: Any) -> Resolved:
        """A class or function by the name it has at home."""
        home, path = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if not isinstance(home, str) or not path or "<" in path or "." in path:
            return None
        module = loaded(home)
        if module is None or vars(module).get(path) is not value:
            return None
        if not self.ours(module):
            return Imported(home, path, path)
        file = self.file(module)
        return self.name(file, path) if file is not None and path in file.bindings else None

    def _unbound(self, file: File, name: str, value: Any, seen: tuple[tuple[str, str], ...]) -> Resolved:
        for star in reversed(file.stars):
            source = loaded(file.absolute(star))
            found = getattr(source, name, _MISSING)
            if source is None or found is _MISSING or (value is not _MISSING and found is not value):
                continue
            if self.ours(source):
                return self._member(source, name, found, seen)
            return Imported(source.__name__, name, name)
        if value is _MISSING or (name.startswith("__") and name.endswith("__")):
            return None
        if isinstance(value, ModuleType):
            return value if self.ours(value) else Imported(value.__name__, None, name)
        resolved = self.by_object(value)
        if resolved is not None:
            return resolved
        text = literal(value)
        if text is None or getattr(builtins, name, _MISSING) is value:
            return None
        return Made(file, name, text)

    def _choose(self, file: File, bindings: list[Binding], value: Any) -> list[Binding]:
        """Of the statements that bind a name, the one that made it what it is; all, where they build on each other."""
        if len(bindings) == 1:
            return bindings
        for binding in reversed(bindings):
            if self._made(file, binding, value):
                return [binding]
        statements = [b for b in bindings if b.alias is None]
        return statements or bindings

    def _made(self, file: File, binding: Binding, value: Any) -> bool:
        statement = binding.statement
        if binding.alias is not None:
            if isinstance(statement, ast.ImportFrom):
                base = file.absolute(statement)
                source = loaded(base)
                found = getattr(source, binding.alias.name, loaded(f"{base}.{binding.alias.name}"))
            else:
                name = binding.alias.name
                found = loaded(name if binding.alias.asname else name.partition(".")[0])
            return found is value
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if getattr(value, "__firstlineno__", None) == statement.lineno:  # from Python 3.13 on
                return True
            return any(_starts_in(code, statement) for code in _codes(value, file.path))
        written = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(written, ast.Constant):
            return type(written.value) is type(value) and written.value == value
        return False


def _codes(value: Any, path: str) -> list[Any]:
    """The code objects of a function, or of a class's own methods, that were compiled from ``path``."""
    if isinstance(value, type):
        functions = [inspect.unwrap(f) for f in vars(value).values() if inspect.isfunction(f)]
        return [f.__code__ for f in functions if f.__code__.co_filename == path]
    try:
        value = inspect.unwrap(value)
    except ValueError:
        return []
    value = getattr(value, "fn", value)  # triton.jit keeps the function there
    return [code] if (code := getattr(value, "__code__", None)) is not None else []


def _starts_in(code: Any, statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
    return first <= code.co_firstlineno <= (statement.end_lineno or statement.lineno)
