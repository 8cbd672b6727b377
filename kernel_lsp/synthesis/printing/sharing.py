"""Kernels that differ in names alone: a network of equal layers has one function for all of them, compiled once."""

from __future__ import annotations

import ast
import functools


@functools.lru_cache(maxsize=1024)  # candidates for one module have kernels in common
def form(definition: str) -> str:
    """A kernel's definition with its own name, its parameters and its variables numbered: equal for equal kernels."""
    (function,) = ast.parse(definition).body
    assert isinstance(function, ast.FunctionDef)
    numbers = {parameter.arg: "" for parameter in function.args.args}
    numbers |= {n.id: "" for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    numbers = {name: f"_{i}" for i, name in enumerate(numbers)}
    function.name = "_"
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.arg = numbers[node.arg]
        elif isinstance(node, ast.Name):
            node.id = numbers.get(node.id, node.id)
    return ast.dump(function)
