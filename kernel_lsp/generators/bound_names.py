"""Which names a tree of Python's syntax has, and what it binds to them."""

from __future__ import annotations

import ast


def names(tree: ast.AST) -> list[ast.Name]:
    """Every use of a name in a tree, and every place where something is bound to one."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name)]


def binds(node: ast.stmt) -> set[str]:
    """The names that a statement itself binds: of an import, an assignment, a definition."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign):
        return {name.id for target in node.targets for name in names(target)}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()


def bindings(tree: ast.AST) -> list[str]:
    """A name for each time that something in a tree is bound to it."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
            found += binds(node)
    return found


def identifiers(tree: ast.AST) -> set[str]:
    """Every identifier in a tree."""
    found = {*bindings(tree), *(name.id for name in names(tree))}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
