"""The order of the copied statements: that in which they ran, so that each finds what it needs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

from kernel_lsp.slicing.collect import Collection, Item
from kernel_lsp.slicing.files import File, loaded


def in_order(collection: Collection, first: Iterable[File]) -> list[Item]:
    """The items as they ran when the modules were imported, each after what it needs at once."""
    places = _places(collection, first)

    def place(item: Item) -> tuple[int, int, int]:
        if item.statement is None:
            return (-1, 0, 0)
        top: ast.AST = item.statement
        while top not in item.file.tops:
            top = item.file.parents[top]
        return (places.get((item.file.name, item.file.tops[top]), sys.maxsize), item.statement.lineno, 0)  # type: ignore[index]

    ordered: dict[Item, None] = {}
    entered: set[Item] = set()

    def emit(item: Item) -> None:
        if item in entered:
            return
        entered.add(item)
        for other in sorted(item.at_once, key=place):
            emit(other)
        ordered[item] = None

    for item in sorted(collection.items.values(), key=place):
        emit(item)
    return list(ordered)


def _places(collection: Collection, first: Iterable[File]) -> dict[tuple[str, int], int]:
    """When each statement ran: an import runs the statements of its module first."""
    places: dict[tuple[str, int], int] = {}
    done: set[str] = set()

    def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            yield statement
            for part in ("body", "handlers", "orelse", "finalbody"):
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    for inner in getattr(statement, part, []):
                        yield from statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])

    def visit(file: File | None) -> None:
        if file is None or file.name in done:
            return
        done.add(file.name)
        package = loaded(file.name.rpartition(".")[0])
        if package is not None:
            visit(collection.resolver.file(package))
        for index, top in enumerate(file.tree.body):
            for statement in statements([top]):
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    for module in file.imports(statement):
                        visit(collection.resolver.file(module))
            places[file.name, index] = len(places)

    for file in [*first, *(item.file for item in collection.items.values())]:
        visit(file)
    return places
