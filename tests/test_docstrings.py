"""Docstrings of public functions say what they raise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "kernel_lsp"
#: what no caller handles: it says that a line is never reached, or left to subclasses
OF_NO_CALLER = {"AssertionError", "NotImplementedError"}
#: what catches each error of ours
CATCH_ALL = {"UserError", "Exception", "BaseException"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(statements: list[ast.stmt]) -> Iterator[Function]:
    """Functions of a module and methods of its classes, without those whose names are private."""
    for statement in statements:
        if isinstance(statement, Function | ast.ClassDef) and statement.name.startswith("_"):
            continue
        if isinstance(statement, Function):
            yield statement
        elif isinstance(statement, ast.ClassDef):
            yield from public_functions(statement.body)


def name_of(node: ast.expr) -> str:
    """``A`` of ``A``, ``errors.A`` and ``errors.A(...)``."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """The classes of what a function's own body raises and does not catch itself."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        name = name_of(node.exc)
        if name[:1].isupper() and not caught & {name, *CATCH_ALL}:
            yield name
    for field, value in ast.iter_fields(node):
        within = caught | caught_by(node) if isinstance(node, ast.Try) and field == "body" else caught
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, Function | ast.ClassDef | ast.Lambda):
                yield from raised(child, within)


def caught_by(statement: ast.Try) -> set[str]:
    kinds = [handler.type for handler in statement.handlers if handler.type is not None]
    each = [kind for one in kinds for kind in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return {name_of(kind) for kind in each}


def test_a_public_function_says_what_it_raises() -> None:
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    unsaid = [
        f"{path.relative_to(PACKAGE)}:{function.lineno} {function.name}: {', '.join(sorted(names))}"
        for path, text in texts.items()
        if "raise " in text
        for function in public_functions(ast.parse(text).body)
        if "Raises:" not in (ast.get_docstring(function) or "")
        if (names := set(raised(function)) - OF_NO_CALLER)
    ]
    assert not unsaid, "\n".join(unsaid)


def test_what_is_caught_is_not_raised() -> None:
    text = "def f():\n try:\n  raise A\n except UserError:\n  raise errors.B('b') from None\n def g():\n  raise C\n raise\n"
    (function,) = public_functions(ast.parse(text).body)
    assert list(raised(function)) == ["B"]
