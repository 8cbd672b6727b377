"""Attributes that methods change and do not read, as a counter of calls or a list of seen shapes: no result depends on them."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any

from .reading import called, methods, words

#: methods of lists, sets and dictionaries that change them
_CHANGES = frozenset(["append", "extend", "insert", "add", "update", "clear", "discard"])


@functools.lru_cache(maxsize=64)  # each schedule of a kernel asks
def only_changed(kinds: frozenset[type]) -> frozenset[str]:
    """The names of attributes that the methods of some classes change and read nowhere, constructors aside.

    By spelling, also in properties, and in the user's functions that methods mention by a global name or as part of a module.
    There are none where a method hands its own object on or has no source: what else reads them is not known then.
    """
    changed: set[str] = set()
    read: set[str] = set()
    for method in {method for kind in kinds for method in methods(kind)}:
        tree = _tree(method)
        if tree is None or _hands_on(tree):
            return frozenset()
        read |= {word for function in called(method) for word in words(function.__code__)}
        targets = {id(target) for node in ast.walk(tree) for target in _targets(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                (changed if id(node) in targets else read).add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)  # perhaps for getattr
    return frozenset(changed - read)


def _targets(node: ast.AST) -> list[ast.AST]:
    """The mentions of attributes in a statement that changes them and gives their value to nothing else."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
        target, operand = node.targets[0], node.value.left  # self.calls = self.calls + 1
        return [target, operand] if ast.unparse(target) == ast.unparse(operand) else []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return [node.value.func.value] if node.value.func.attr in _CHANGES else []
    return []


def _hands_on(function: ast.FunctionDef) -> bool:
    """Whether the object itself is used otherwise than for its attributes."""
    if not function.args.args:
        return False
    name = function.args.args[0].arg
    own = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in own for node in ast.walk(function))


def _tree(method: Any) -> ast.FunctionDef | None:
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(method))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    return found if isinstance(found, ast.FunctionDef) else None
