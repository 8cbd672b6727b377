"""Attributes that methods change and do not read, as a counter of calls or a list of seen shapes: no result depends on them."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any

from .module_settings import methods

_PROPERTIES = (property, functools.cached_property)
#: methods of lists, sets and dictionaries that change them
_CHANGES = frozenset(["append", "extend", "insert", "add", "update", "clear", "discard"])


@functools.lru_cache(maxsize=8)  # each schedule of a kernel asks
def only_changed(kinds: frozenset[type]) -> frozenset[str]:
    """The names of attributes that the methods of some classes change and read nowhere, constructors aside.

    By spelling, also in properties, and in the user's functions that methods mention by a global name or as part of a module.
    There are none where a method hands its own object on or has no source: what else reads them is not known then.
    """
    changed: set[str] = set()
    read: set[str] = set()
    for method in {method for kind in kinds for method in (*methods(kind), *_getters(kind))}:
        tree = _tree(method)
        if tree is None or _hands_on(tree):
            return frozenset()
        read |= {word for called in _called(method) for word in _names_in(called.__code__)}
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


def _getters(kind: type) -> list[Any]:
    """The functions behind the properties of a class and its bases up to torch's."""
    attributes = [
        one for base in kind.__mro__ if not base.__module__.startswith("torch.") for one in vars(base).values()
    ]
    found = [one.fget if isinstance(one, property) else one.func for one in attributes if isinstance(one, _PROPERTIES)]
    return [inspect.unwrap(getter) for getter in found if inspect.isfunction(getter)]


def _called(method: Any) -> set[Any]:
    """The user's functions that a method mentions, and those that these mention, by a global name or as part of a module."""
    found: set[Any] = set()
    waiting = [method]
    while waiting:
        function = waiting.pop()
        names = _names_in(function.__code__)
        mentioned = [function.__globals__.get(word) for word in names]
        mentioned += [
            getattr(one, word, None) for one in mentioned if isinstance(one, types.ModuleType) for word in names
        ]
        new = {one for one in mentioned if inspect.isfunction(one) and not one.__module__.startswith("torch.")} - found
        found |= new
        waiting += new
    return found


def _names_in(code: types.CodeType) -> set[str]:
    """The names in ``code`` and in the functions inside it."""
    inner = [constant for constant in code.co_consts if inspect.iscode(constant)]
    return set(code.co_names).union(*map(_names_in, inner))


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
