"""All that a class reaches: statements of the workspace to copy, and what is imported from elsewhere."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

import torch

from kernel_lsp.slicing.files import File, is_main_guard, loaded
from kernel_lsp.slicing.literals import literal
from kernel_lsp.slicing.resolve import Defined, Imported, Made, Resolved, Resolver
from kernel_lsp.slicing.scopes import Import, Reference, bindings_of, names_in

#: lines that are copied out of an installed package; what is beyond is imported
PACKAGE_LINES = 400


@dataclass(frozen=True)
class Key:
    """A name that a copied statement binds: a module's, or a class's inside another (``Outer.Inner``)."""

    module: str
    name: str


Name = Key | Imported


@dataclass(frozen=True)
class Edit:
    """Bytes of the file to replace: by the name that ``to`` gets, or by ``text``."""

    start: int
    end: int
    to: Name | None = None
    text: str = ""
    node: ast.AST | None = None


@dataclass(eq=False)
class Item:
    """A statement to copy. ``inside``: the class it is taken out of; ``made``: a constant instead of a statement."""

    file: File
    statement: ast.stmt | None
    inside: ast.ClassDef | None = None
    made: Made | None = None
    keys: list[Key] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    at_once: dict[Item, None] = field(default_factory=dict)  # what has to be there when it is defined


@dataclass(frozen=True)
class How:
    """How much a slice takes over as it stands.

    ``rename``: the class becomes ``Model``, else ``Model`` is another name for it. ``by_value``: constants are written
    as the values they have, decorators of modules are left out. ``whole``: every statement of the files is copied.
    """

    rename: bool = True
    by_value: bool = False
    whole: bool = False


class Collection:
    """``items`` in the order they were found; ``imported`` in use; ``hidden``: local names around each use of a name."""

    def __init__(self, resolver: Resolver, how: How) -> None:
        self.resolver = resolver
        self.how = how
        self.items: dict[object, Item] = {}
        self.owner: dict[Key, Item] = {}
        self.imported: dict[Imported, None] = {}
        self.dotted: dict[str, None] = {}  # import a.b, for a use of a.b that only "import a" would not make work
        self.hidden: dict[Name, set[str]] = {}
        self.unresolved: set[str] = set()  # builtins, mostly: not to be shadowed
        self.modules: dict[str, None] = {}  # of the workspace, imported because they are used as values
        self.spent = 0
        self._waiting: deque[Item] = deque()

    def run(self) -> None:
        """Follow every reference."""
        while True:
            while self._waiting:
                self._follow(self._waiting.popleft())
            if not self.how.whole or not self._rest():
                return

    def _rest(self) -> bool:
        """Queue what is left of the files; whether there was anything."""
        before = len(self.items)
        files = {item.file.name: item.file for item in self.items.values()}
        for file in files.values():
            if not self.resolver.workspace.holds(file.module):
                continue
            for statement in file.tree.body:
                is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if not (isinstance(statement, ast.Import | ast.ImportFrom) or is_main_guard(statement) or is_text):
                    self._statement(file, statement)
        return len(self.items) > before

    def need(self, resolved: Defined | Made) -> tuple[Key, list[Item]]:
        """Queue what defines a name."""
        key = Key(resolved.file.name, resolved.name)
        if isinstance(resolved, Made):
            item = self.items.get(key)
            if item is None:
                item = self.items[key] = self.owner[key] = Item(resolved.file, None, made=resolved, keys=[key])
            return key, [item]
        if self.how.by_value and not isinstance(resolved.one, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            text = literal(vars(resolved.file.module).get(resolved.name, ...))
            if text not in (None, "..."):
                return self.need(Made(resolved.file, resolved.name, str(text)))
        bindings = resolved.statements
        alone = len(bindings) == 1 and bindings[0].alone
        statements = dict.fromkeys(b.statement if alone else b.top for b in bindings)
        return key, [self._statement(resolved.file, statement) for statement in statements]

    def nested(self, file: File, outer: list[ast.ClassDef], key: Key) -> Item:
        """Queue a class out of the body of another one."""
        node = outer[-1]
        if node not in self.items:
            item = Item(file, node, inside=outer[-2], keys=[key])
            self._add(node, item)
        return self.items[node]

    def _statement(self, file: File, statement: ast.stmt) -> Item:
        if statement not in self.items:
            keys = [Key(file.name, name) for name in bindings_of(statement)]
            self._add(statement, Item(file, statement, keys=keys))
        return self.items[statement]

    def _add(self, place: object, item: Item) -> None:
        assert item.statement is not None
        self.items[place] = item
        for key in item.keys:
            self.owner.setdefault(key, item)
        if not self.resolver.workspace.holds(item.file.module):
            item.edits += [edit for _, edit in _manuals(item.file, item.statement)]
            self.spent += _length(item.file, item.statement)
        self._waiting.append(item)

    def _follow(self, item: Item) -> None:
        statement, file = item.statement, item.file
        assert statement is not None
        names = names_in(statement, lambda s, alias: self.resolver.is_ours(file, s, alias))
        dropped = self._drop_decorators(item)
        for statement_in in names.imports:
            self._rewrite_import(item, statement_in)
        for reference in sorted(names.references, key=lambda r: r.role != "base"):
            if not (dropped and reference.header and reference.role == "decorator"):
                self._reference(item, reference)
        for declared in names.declared:
            self._declared(item, declared)

    def _drop_decorators(self, item: Item) -> bool:
        node = item.statement
        if not (self.how.by_value and isinstance(node, ast.ClassDef) and node.decorator_list):
            return False
        found = vars(item.file.module).get(node.name)
        if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
            return False
        first = node.decorator_list[0]
        start = item.file.offset(first.lineno, 0) + node.col_offset
        item.edits.append(Edit(start, item.file.start(node)))
        return True

    def _reference(self, item: Item, reference: Reference) -> None:
        node, file = reference.node, item.file
        if not isinstance(node, ast.Name):
            self._edit(item, reference, *file.name_span(node), self._own_key(item, reference.name))
            return
        if isinstance(node.ctx, ast.Store) and not reference.late:
            self._edit(item, reference, file.start(node), file.end(node), self._own_key(item, node.id))
            return
        if reference.header and item.inside is not None and self._in_class(item, reference):
            return
        if reference.imported is not None:
            resolved = self.resolver.alias(file, *reference.imported)
        else:
            resolved = self.resolver.name(file, node.id)
        self._use(item, reference, resolved)

    def _own_key(self, item: Item, name: str) -> Key:
        return item.keys[0] if item.inside is not None else Key(item.file.name, name)

    def _in_class(self, item: Item, reference: Reference) -> bool:
        """A base or decorator of a nested class that the class around it binds is reached through that one."""
        outer = item.inside
        assert outer is not None
        if not any(reference.name in bindings_of(s) for s in outer.body):
            return False
        resolved = self.resolver.name(item.file, outer.name)
        if not isinstance(resolved, Defined) or resolved.one is not outer:
            return False
        sibling = next((s for s in outer.body if isinstance(s, ast.ClassDef) and s.name == reference.name), None)
        node = reference.node
        start, end = item.file.start(node), item.file.end(node)
        if sibling is not None:
            key = Key(item.file.name, f"{outer.name}.{reference.name}")
            item.at_once[self.nested(item.file, [outer, sibling], key)] = None
            self._edit(item, reference, start, end, key)
        else:
            key, items = self.need(resolved)
            item.at_once.update(dict.fromkeys(items))
            self._edit(item, reference, start, start, key)
            item.edits.append(Edit(start, start, text="."))
        return True

    def _use(self, item: Item, reference: Reference, resolved: Resolved) -> None:
        file, node = item.file, reference.node
        assert isinstance(node, ast.Name)
        end: ast.AST = node
        while isinstance(resolved, ModuleType):
            above = file.parents.get(end)
            attribute = above if isinstance(above, ast.Attribute) and above.value is end else None
            found = self.resolver.member(resolved, attribute.attr) if attribute is not None else None
            if attribute is None or found is None:
                self.modules[resolved.__name__] = None
                resolved = Imported(resolved.__name__, None, resolved.__name__.rpartition(".")[2])
                break
            resolved, end = found, attribute
        if isinstance(resolved, Defined) and not self._copied(resolved):
            resolved = Imported(resolved.file.name, resolved.name, resolved.name)
        if resolved is None:
            if isinstance(node.ctx, ast.Load):
                self.unresolved.add(node.id)
            return
        if isinstance(resolved, Imported):
            name: Name = self._import(file, end, resolved)
        else:
            assert isinstance(resolved, Defined | Made)
            name, end = self._define(item, reference, resolved, end)
        self._edit(item, reference, file.start(node), file.end(end), name, end)

    def _copied(self, resolved: Defined) -> bool:
        """Out of an installed package: what there is room for, bases first."""
        if self.resolver.workspace.holds(resolved.file.module) or resolved.one in self.items:
            return True
        if Key(resolved.file.name, resolved.name) in self.owner:
            return True
        return self.spent + sum(_length(resolved.file, b.top) for b in resolved.statements) <= PACKAGE_LINES

    def _define(self, item: Item, reference: Reference, resolved: Defined | Made, end: ast.AST) -> tuple[Key, ast.AST]:
        file = item.file
        if isinstance(resolved, Defined) and isinstance(resolved.one, ast.ClassDef):
            outer = [resolved.one]
            path, node = resolved.name, end
            while True:  # Outer.Inner
                above = file.parents.get(node)
                if not (isinstance(above, ast.Attribute) and above.value is node):
                    break
                inner = next((s for s in outer[-1].body if isinstance(s, ast.ClassDef) and s.name == above.attr), None)
                if inner is None:
                    break
                outer.append(inner)
                path, node = f"{path}.{inner.name}", above
            if len(outer) > 1:
                key = Key(resolved.file.name, path)
                self._order(item, reference, [self.nested(resolved.file, outer, key)])
                return key, node
        key, items = self.need(resolved)
        self._order(item, reference, items)
        if isinstance(resolved, Defined) and reference.role != "decorator":
            self._mutators(resolved)
        return key, end

    def _order(self, item: Item, reference: Reference, items: Iterable[Item]) -> None:
        if not reference.late and not (reference.role == "annotation" and item.file.postponed):
            item.at_once.update({other: None for other in items if other is not item})

    def _mutators(self, resolved: Defined) -> None:
        """Queue the statements that change what the name stands for: entries of a registry, a patched method."""
        if not self.resolver.workspace.holds(resolved.file.module):
            return
        definition = isinstance(resolved.one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for statement in resolved.file.mutators.get(resolved.name, []):
            if not definition or not isinstance(statement, ast.Expr):
                self._statement(resolved.file, statement)

    def _import(self, file: File, end: ast.AST, resolved: Imported) -> Imported:
        if resolved.name is None and not resolved.bound:
            root = resolved.module.partition(".")[0]
            path, node = root, end
            while isinstance(above := file.parents.get(node), ast.Attribute) and above.value is node:
                path, node = f"{path}.{above.attr}", above
            for binding in file.bindings.get(root, []):
                dotted = binding.alias.name if binding.alias is not None else ""
                if "." in dotted and not binding.alias.asname and f"{path}.".startswith(f"{dotted}."):  # type: ignore[union-attr]
                    self.dotted[dotted] = None
            resolved = Imported(root, None, root)
        value = _imported(resolved)
        for known in self.imported:  # "import torch.nn as nn" in one file, "from torch import nn" in another
            if known.bound == resolved.bound and value is not None and _imported(known) is value:
                return known
        self.imported[resolved] = None
        return resolved

    def _edit(
        self, item: Item, reference: Reference, start: int, end: int, to: Name, node: ast.AST | None = None
    ) -> None:
        self.hidden.setdefault(to, set()).update(reference.visible)
        item.edits.append(Edit(start, end, to, node=node))

    def _declared(self, item: Item, declared: ast.Global) -> None:
        """``global a, b`` in a function: written with the names that a and b get."""
        start = item.file.start(declared) + len("global")
        for i, name in enumerate(declared.names):
            resolved = self.resolver.name(item.file, name)
            text = " " if i == 0 else ", "
            if isinstance(resolved, Defined):
                self._mutators(resolved)
                key, _ = self.need(resolved)
                item.edits += [Edit(start, start, text=text), Edit(start, start, key)]
            else:
                item.edits.append(Edit(start, start, text=f"{text}{name}"))
        item.edits.append(Edit(start, item.file.end(declared)))

    def _rewrite_import(self, item: Item, statement: Import) -> None:
        """An import inside what is copied: of the workspace, gone; relative in a package, absolute."""
        file = item.file
        start, end = file.start(statement), file.end(statement)
        rest = [alias for alias in statement.names if not self.resolver.is_ours(file, statement, alias)]
        if not rest:
            item.edits.append(Edit(start, end, text="pass"))
        elif isinstance(statement, ast.ImportFrom):
            if statement.level:
                whole = ast.ImportFrom(file.absolute(statement), rest, 0)
                item.edits.append(Edit(start, end, text=ast.unparse(whole)))
        elif len(rest) < len(statement.names):
            item.edits.append(Edit(start, end, text=ast.unparse(ast.Import(rest))))


def _imported(imported: Imported) -> object:
    """What an import gives."""
    module = loaded(imported.module)
    if imported.name is None:
        return module
    return getattr(module, imported.name, loaded(f"{imported.module}.{imported.name}"))


def _manuals(file: File, statement: ast.stmt) -> list[tuple[int, Edit]]:
    """The long docstrings in a statement, which in a package are its manual: (lines saved, cut to the first line)."""
    found = []
    for node in ast.walk(statement):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            text = node.body[0].value  # type: ignore[attr-defined]
            lines = text.end_lineno - text.lineno
            if lines > 2:
                first = str(ast.get_docstring(node)).partition("\n")[0]
                plain = not set(first) & set('"\\')
                short = f'"""{first}"""' if plain else repr(first)
                found.append((lines, Edit(file.start(text), file.end(text), text=short)))
    return found


def _length(file: File, statement: ast.stmt) -> int:
    return file.lines_of(statement) - sum(lines for lines, _ in _manuals(file, statement))
