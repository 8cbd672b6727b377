"""The names of a module in its statements, against Python's own symbol tables."""

from __future__ import annotations

import ast
import symtable
import sysconfig
import tokenize
from pathlib import Path

import pytest

from kernel_lsp.slicing.scopes import names_in

LIBRARY = Path(sysconfig.get_path("stdlib"))
FILES = ["dataclasses", "typing", "enum", "functools", "inspect", "argparse", "asyncio/events", "asyncio/tasks",
         "collections/__init__", "concurrent/futures/process", "email/message", "fractions", "http/client", "logging/__init__",
         "optparse", "pickle", "random", "statistics", "tarfile", "textwrap", "threading", "traceback", "unittest/mock", "uuid"]  # fmt: skip


def tables(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    return [table, *(t for child in table.get_children() for t in tables(child))]


def expected(node: ast.stmt) -> tuple[set[str], set[str]]:
    """(names of the module, names that a class body binds itself and may have read from the module before)."""
    top, *inner = tables(symtable.symtable(ast.unparse(node), "statement", "exec"))
    names = {s.get_name() for s in top.get_symbols() if s.is_referenced() or s.is_assigned()}
    names |= {s.get_name() for t in inner for s in t.get_symbols() if s.is_global() and (s.is_referenced() or s.is_assigned())}  # fmt: skip
    local = {s.get_name() for t in inner if t.get_type() == "class" for s in t.get_symbols() if s.is_local()}
    return names, local


@pytest.mark.parametrize("name", FILES)
def test_the_standard_library(name: str) -> None:
    with tokenize.open(LIBRARY / f"{name}.py") as file:
        tree = ast.parse(file.read())
    compared = 0
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.If | ast.Try):
            continue
        if any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(node)):
            continue  # names that an import binds at the top are no references
        found = {r.name for r in names_in(node).references}
        names, local = expected(node)
        left = {n for n in found | names if "__" in n.strip("_") or n.startswith("__")}  # mangled in classes
        comprehensions = [n.target for n in ast.walk(node) if isinstance(n, ast.comprehension)]
        left |= {n.id for c in comprehensions for n in ast.walk(c) if isinstance(n, ast.Name)}  # inlined from 3.12 on
        assert names - left <= found, (node.lineno, names - found)
        assert found - left <= names | local, (node.lineno, found - names)
        compared += 1
    assert compared > 2


def one(source: str) -> dict[str, bool]:
    """Name → whether it is needed only when a function runs."""
    (node,) = ast.parse(source).body
    found: dict[str, bool] = {}
    for reference in names_in(node).references:
        found[reference.name] = found.get(reference.name, True) and reference.late
    return found


def test_what_is_needed_at_once_and_what_later() -> None:
    source = """
@deco(A)
class C(Base, metaclass=Meta):
    x: Hint = B
    y = [x + z for z in D]
    def f(self, a: Arg = E) -> Ret:
        return a + F + self.g(C, y)
"""
    found = one(source)
    assert {name for name, late in found.items() if late} == {"F", "y"}
    at_once = {name for name, late in found.items() if not late}
    # x: what a comprehension loops over is the class's, its elements do not see the class around them
    assert at_once == {"deco", "A", "Base", "Meta", "Hint", "B", "D", "Arg", "E", "Ret", "C", "x"}


def test_locals_hide_what_comes_in_their_place() -> None:
    (node,) = ast.parse("def f(Norm, *, a=1):\n    for b in g():\n        layers.Norm([c for c in b])\n").body
    (reference,) = [r for r in names_in(node).references if r.name == "layers"]
    assert reference.visible == {"Norm", "a", "b"}
