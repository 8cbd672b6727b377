"""Which names in a statement belong to the module around it, by Python's scoping rules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Import = ast.Import | ast.ImportFrom
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

Role = Literal["", "base", "decorator", "annotation"]


@dataclass(frozen=True)
class Reference:
    """A use of a name of the module: ``node`` is the Name, or the def or class statement that binds it.

    ``late``: not before a function is called. ``visible``: the local names around it, which would capture another
    name written in its place. ``imported``: the import inside a function or class that bound it there.
    """

    node: ast.Name | Definition
    name: str
    late: bool
    role: Role
    visible: frozenset[str]
    imported: tuple[Import, ast.alias] | None = None
    header: bool = False  # among the bases and decorators of the statement itself, which the scope around it evaluates


@dataclass
class _Scope:
    is_class: bool
    local: dict[str, tuple[Import, ast.alias] | None] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # declared global


@dataclass
class Names:
    """What ``names_in`` finds: references, ``global`` statements in functions, and the imports it was to replace."""

    references: list[Reference] = field(default_factory=list)
    declared: list[ast.Global] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)  # inside functions and classes, and at the top


def names_in(statement: ast.stmt, ours: Callable[[Import, ast.alias], bool] = lambda *_: False) -> Names:
    """The names of the module that ``statement``, one of its statements, uses or binds.

    ``ours`` says of a name that is imported inside a function whether it is to be treated as one of the module.
    """
    walker = _Walker(ours)
    walker.root = statement
    walker.statement(statement, [], late=False)
    return walker.found


class _Walker:
    def __init__(self, ours: Callable[[Import, ast.alias], bool]) -> None:
        self.ours = ours
        self.found = Names()
        self.root: ast.AST | None = None

    def statements(self, body: Iterable[ast.stmt], scopes: list[_Scope], late: bool) -> None:
        for statement in body:
            self.statement(statement, scopes, late)
            if scopes and scopes[-1].is_class:
                scopes[-1].local.update(self.bound([statement]))

    def statement(self, node: ast.stmt, scopes: list[_Scope], late: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.definition(node, scopes, late)
            inner = self.type_parameters(node, scopes, late)
            self.signature(node, scopes, inner, late)
            self.function(node, node.body, inner)
        elif isinstance(node, ast.ClassDef):
            self.definition(node, scopes, late)
            inner = self.type_parameters(node, scopes, late)
            for base in node.bases:
                self.expression(base, inner, late, "base", node is self.root)
            for keyword in node.keywords:
                self.expression(keyword.value, inner, late, "", node is self.root)
            self.statements(node.body, [*inner, _Scope(is_class=True)], late)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.found.imports.append(node)
        elif isinstance(node, ast.Global):
            if scopes:
                self.found.declared.append(node)
        elif isinstance(node, ast.AnnAssign):
            self.expression(node.annotation, scopes, late, "annotation")
            for part in (node.value, node.target):
                if part is not None:
                    self.expression(part, scopes, late)
        else:
            for child in _fields(node):
                if isinstance(child, ast.stmt):
                    self.statement(child, scopes, late)
                    if scopes and scopes[-1].is_class:
                        scopes[-1].local.update(self.bound([child]))
                else:
                    self.expression(child, scopes, late)

    def definition(self, node: Definition, scopes: list[_Scope], late: bool) -> None:
        for decorator in node.decorator_list:
            self.expression(decorator, scopes, late, "decorator", node is self.root)
        if not scopes or node.name in scopes[-1].outer:
            self.found.references.append(Reference(node, node.name, late, "", frozenset()))

    def type_parameters(self, node: ast.AST, scopes: list[_Scope], late: bool) -> list[_Scope]:
        """The scopes inside ``class C[T]`` or ``def f[T]``."""
        parameters = getattr(node, "type_params", [])
        if not parameters:
            return scopes
        inner = [*scopes, _Scope(False, {p.name: None for p in parameters})]
        for parameter in parameters:
            for child in _fields(parameter):
                self.expression(child, inner, True)
        return inner

    def signature(self, node: Function, scopes: list[_Scope], inner: list[_Scope], late: bool) -> None:
        arguments = node.args
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.expression(default, scopes, late)
        for argument in _arguments(arguments):
            if argument.annotation is not None:
                self.expression(argument.annotation, inner, late, "annotation")
        returns = getattr(node, "returns", None)
        if returns is not None:
            self.expression(returns, inner, late, "annotation")

    def function(self, node: Function, body: list[ast.stmt] | ast.expr, scopes: list[_Scope]) -> None:
        scope = _Scope(False, {a.arg: None for a in _arguments(node.args)})
        inside = body if isinstance(body, list) else [body]
        scope.local.update(self.bound(inside))
        for found in _own(inside):
            if isinstance(found, ast.Global):
                scope.outer.update(found.names)
            if isinstance(found, ast.Global | ast.Nonlocal):
                for name in found.names:
                    scope.local.pop(name, None)
        if isinstance(body, list):
            self.statements(body, [*scopes, scope], late=True)
        else:
            self.expression(body, [*scopes, scope], late=True)

    def bound(self, nodes: Iterable[ast.AST]) -> dict[str, tuple[Import, ast.alias] | None]:
        """The names that statements bind in their own scope; with the import, where it is to be replaced."""
        names: dict[str, tuple[Import, ast.alias] | None] = {}
        for node in _own(nodes):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    names[bound_by(alias, node)] = (node, alias) if self.ours(node, alias) else None
            else:
                names.update(dict.fromkeys(_binds(node)))
        return names

    def expression(
        self, node: ast.AST, scopes: list[_Scope], late: bool, role: Role = "", header: bool = False
    ) -> None:
        if isinstance(node, ast.Name):
            self.name(node, scopes, late, role, header)
        elif isinstance(node, ast.Lambda):
            self.signature(node, scopes, scopes, late)
            self.function(node, node.body, scopes)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            first = node.generators[0]
            self.expression(first.iter, scopes, late, role, header)
            targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            inner = [*scopes, _Scope(False, dict.fromkeys(targets))]
            for generator in node.generators:
                self.expression(generator.target, inner, late)
                if generator is not first:
                    self.expression(generator.iter, inner, late)
                for condition in generator.ifs:
                    self.expression(condition, inner, late)
            results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for result in results:
                self.expression(result, inner, late)
        else:
            for child in _fields(node):
                if isinstance(child, ast.stmt):  # of an except clause or a match case
                    self.statement(child, scopes, late)
                else:
                    self.expression(child, scopes, late, role, header)

    def name(self, node: ast.Name, scopes: list[_Scope], late: bool, role: Role, header: bool) -> None:
        if scopes and scopes[-1].is_class and not isinstance(node.ctx, ast.Load) and node.id not in scopes[-1].outer:
            return
        visible: set[str] = set()
        imported = None
        for depth, scope in enumerate(reversed(scopes)):
            if scope.is_class and depth:
                continue
            if node.id in scope.outer and imported is None:
                break
            if node.id in scope.local and imported is None:
                imported = scope.local[node.id]
                if imported is None:
                    return
            visible.update(name for name, replaced in scope.local.items() if replaced is None)
        self._add(node, late, role, visible, imported, header)

    def _add(
        self,
        node: ast.Name,
        late: bool,
        role: Role,
        visible: set[str],
        imported: tuple[Import, ast.alias] | None,
        header: bool,
    ) -> None:
        self.found.references.append(Reference(node, node.id, late, role, frozenset(visible), imported, header))


def bound_by(alias: ast.alias, statement: Import) -> str:
    """The name that ``import a.b`` or ``from a import b as c`` binds."""
    if alias.asname:
        return alias.asname
    return alias.name if isinstance(statement, ast.ImportFrom) else alias.name.partition(".")[0]


def bindings_of(statement: ast.stmt) -> list[str]:
    """The names that a statement binds where it stands."""
    return list(_Walker(lambda *_: False).bound([statement]))


def _fields(node: ast.AST) -> Iterator[ast.AST]:
    """Children in the order of evaluation: an assignment's value before its targets."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Assign):
        children = [node.value, *node.targets]
    yield from children


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [a for a in every if a is not None]


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """``nodes`` and what is inside them, without what has a scope of its own; walrus in comprehensions included."""
    for node in nodes:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _own(node.decorator_list)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            yield from (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            yield from _own(ast.iter_child_nodes(node))


def _binds(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if node.__class__.__name__ == "TypeAlias":  # from Python 3.12 on
        return [node.name.id]  # type: ignore[attr-defined]
    return []
