"""Names for the free sizes of a graph: what forward calls them, else the argument and its dimension.

torch.export's own (``s77``) mean nothing to a reader, and differ between its versions.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from kernel_lsp import class_schema


def rename(specimen: class_schema.Specimen, forward: Callable[..., Any]) -> None:
    """Give the size symbols of ``specimen.inputs`` and ``specimen.dynamic`` readable names, in place."""
    called = _called(forward)
    names: dict[str, str] = {}
    for spec in specimen.inputs:
        for dimension, symbol in enumerate(spec.dynamic):
            if symbol is None or not symbol.isidentifier() or symbol in names:
                continue
            plain = re.sub(r"\W+", "_", spec.name).strip("_")
            name = called.get((spec.name, dimension)) or called.get((spec.name, dimension - len(spec.dynamic)))
            name = name or f"{plain or 'input'}_{dimension}"
            while name in names.values():
                name += "_"
            names[symbol] = name

    def renamed(text: str) -> str:
        return re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), text)

    for spec in specimen.inputs:
        spec.dynamic = [None if symbol is None else renamed(symbol) for symbol in spec.dynamic]
    specimen.dynamic = {renamed(symbol): limits for symbol, limits in specimen.dynamic.items()}


def _called(forward: Callable[..., Any]) -> dict[tuple[str, int], str]:
    """(Argument, dimension) → name, from ``b, t, _ = x.shape`` and ``t = x.size(1)`` while x is what forward was given."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(forward))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return {}
    arguments = {a.arg for a in [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]}
    found: dict[tuple[str, int], str] = {}
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if (shape := _shape_of(statement.value)) is not None and shape[0] in arguments:
                argument, dimension = shape
                targets = target.elts if isinstance(target, ast.Tuple) and dimension is None else [target]
                if dimension is not None or isinstance(target, ast.Tuple):
                    for i, one in enumerate(targets):
                        if isinstance(one, ast.Starred):
                            break
                        if isinstance(one, ast.Name) and one.id.strip("_"):
                            found.setdefault((argument, i if dimension is None else dimension), one.id)
        arguments -= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


def _shape_of(value: ast.expr) -> tuple[str, int | None] | None:
    """("x", None) of ``x.shape`` and ``x.size()``, ("x", 1) of ``x.shape[1]`` and ``x.size(1)``."""
    found = re.fullmatch(r"(\w+)\.(?:shape|size\(\))(?:\[(-?\d+)\])?|(\w+)\.size\((-?\d+)\)", ast.unparse(value))
    if found is None:
        return None
    dimension = found[2] or found[4]
    return found[1] or found[3], None if dimension is None else int(dimension)
