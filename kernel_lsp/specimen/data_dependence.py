"""Which value of forward a line depends on, and what to do: for a line that torch.export cannot trace without the values."""

from __future__ import annotations

import ast
from typing import NamedTuple

import torch

#: methods of a tensor that make a Python number of it, and functions; its methods ``int``, ``float`` and ``bool`` convert it
_METHODS, _FUNCTIONS = frozenset(["item", "tolist"]), frozenset(["int", "float", "bool"])
_DECIDE = "Choose between the results with torch.where, or decide before the module is called."
_WHOLE = (
    "Compute with the whole tensor, and weight what is not selected by 0 (a mask), so that no size depends on values; or do "
    "this outside the module."
)
_REPEAT = "Make the number of steps an argument or a setting, or leave the loop outside the module."
_CHECK = "Check it before the module is called."
_UNCHECKED = "Give it validate_args=False."
_KEEP = "Take sizes from shapes, keep the value a tensor, or pass the number to forward as an argument."
_DECIDING: tuple[tuple[str, type[ast.If | ast.While | ast.Assert], str], ...] = (
    ("if", ast.If, _DECIDE),
    ("while", ast.While, _REPEAT),
    ("assert", ast.Assert, _CHECK),
)


class Told(NamedTuple):
    """``what``: the code that the line depends on, as a clause; ``advice``: a sentence; ``of_size``: whether it is a size."""

    what: str
    advice: str
    of_size: bool = False


def described(path: str, line: int) -> Told | None:
    """What a line of a file depends on; None where nothing in it is known to look at values."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    here = [n for n in ast.walk(tree) if isinstance(n, ast.stmt | ast.expr) and n.lineno <= line <= (n.end_lineno or 0)]
    functions = [n for n in here if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in sorted(here, key=lambda n: ((n.end_lineno or 0) - n.lineno, not isinstance(n, ast.stmt))):
        for keyword, kind, advice in _DECIDING:
            if isinstance(node, kind) and node.test.lineno <= line <= (node.test.end_lineno or 0):
                colon = "" if keyword == "assert" else ":"
                what = f"`{keyword} {ast.unparse(node.test)}{colon}`"
                if keyword == "if" and (sizes := _sizes_in(node.test)):
                    return Told(what + _sized_by(sizes, functions), _WHOLE, of_size=True)
                return Told(what + _where_from(node.test, functions), advice)
        if isinstance(node, ast.IfExp):
            what = f"`{ast.unparse(node.test)}`, which chooses"
            if sizes := _sizes_in(node.test):
                return Told(what + _sized_by(sizes, functions), _WHOLE, of_size=True)
            return Told(what + _where_from(node.test, functions), _DECIDE)
        taken = [n for n in ast.walk(node) if isinstance(n, ast.Call) and _takes_out(n) and n.lineno <= line]
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef) and taken:
            return Told(f"`{ast.unparse(taken[0])}`, a number out of a tensor", _KEEP)
    for node in here:
        if isinstance(node, ast.Call) and _checks_parameters(node):
            return Told(f"`{ast.unparse(node)}`, which checks the values of its parameters", _UNCHECKED)
    return None


def _checks_parameters(call: ast.Call) -> bool:
    """``Normal(mean, std)``, ``torch.distributions.Normal(mean, std)``: a distribution that looks at what it is given."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    kind = getattr(torch.distributions, name, None)
    known = isinstance(kind, type) and issubclass(kind, torch.distributions.Distribution)
    return known and all(keyword.arg != "validate_args" for keyword in call.keywords)


def _takes_out(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _METHODS
    return getattr(node.func, "id", "") in _FUNCTIONS and len(node.args) == 1


def _sizes_in(test: ast.expr) -> list[ast.expr]:
    """The sizes in a condition that looks at nothing but sizes, numbers and settings: ``tok.numel() == 0``; [] for any other.

    A name may stand for a number that was taken out of a tensor, or for a tensor.
    """
    found: list[ast.expr] = []
    left = [test]
    while left:
        node = left.pop()
        if _is_size(node):
            found.append(node)
        elif isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Compare):
            left += [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        elif not (isinstance(node, ast.Constant) or _is_setting(node)):
            return []
    return found


def _is_size(node: ast.expr) -> bool:
    """``t.shape``, ``t.size(0)``, ``t.numel()``, ``len(t)``, or an element of one."""
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr == "shape"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("size", "numel", "nelement")
    return isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1


def _is_setting(node: ast.expr) -> bool:
    """``self.limit``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _sized_by(sizes: list[ast.expr], functions: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> str:
    """Where the tensor of such a size was given its value: "; `tok = x[rows]`, line 12"."""
    names = {n.id for size in sizes for n in ast.walk(size) if isinstance(n, ast.Name)}
    inner = max(functions, key=lambda f: f.lineno, default=None)
    given = [
        n
        for n in (ast.walk(inner) if inner is not None else ())
        if isinstance(n, ast.Assign)
        and n.lineno < sizes[0].lineno
        and any(isinstance(part, ast.Name) and part.id in names for target in n.targets for part in ast.walk(target))
    ]
    last = max(given, key=lambda n: n.lineno, default=None)
    return f"; `{ast.unparse(last)}`, line {last.lineno}" if last is not None else ""


def _where_from(test: ast.expr, functions: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> str:
    """Where a name in a condition was given a value: "; k = x.sum().item(), line 12"."""
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    inner = max(functions, key=lambda f: f.lineno, default=None)
    if inner is None or any(_takes_out(n) for n in ast.walk(test)):
        return ""
    given = [
        n
        for n in ast.walk(inner)
        if isinstance(n, ast.Assign)
        and n.lineno < test.lineno
        and any(isinstance(target, ast.Name) and target.id in names for target in n.targets)
        and any(_takes_out(part) for part in ast.walk(n.value))
    ]
    return f"; `{ast.unparse(given[-1])}`, line {given[-1].lineno}" if given else ""
