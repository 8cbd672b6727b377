"""Hashes of Python code that a formatter does not change."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import io
import tokenize
from collections.abc import Iterator


def code_hash(text: str) -> str:
    """Of the syntax tree and the comments, the same in every layout, order of imports at the margin and version of Python; "" where it does not parse."""
    try:
        tree = ast.parse(text)
        imports = sorted(repr(one) for node in tree.body for one in _imported(node))
        rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
        found = repr((imports, [part for node in rest for part in _parts(node)], _comments(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return ""
    return _hash(found)


@functools.lru_cache(maxsize=256)
def tree_hash(text: str) -> str:
    """Of the syntax tree alone, with docstrings without their layout, the same in every layout and version of Python.

    "" where it does not parse.

    The order of imports counts, unlike for ``code_hash``: the last import of a name is the one that is used.
    """
    try:
        return _hash(repr(list(_parts(ast.parse(text)))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _imported(node: ast.stmt) -> list[tuple[str, int, str, str | None]]:
    if isinstance(node, ast.Import):
        return [(alias.name, 0, "", alias.asname) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "", node.level, alias.name, alias.asname) for alias in node.names]
    return []


def _parts(node: ast.AST) -> Iterator[object]:
    """The tree as a sequence, without what is absent: versions of Python have different optional fields."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        yield [line.rstrip() for line in inspect.cleandoc(node.value.value).split("\n")]  # formatters indent docstrings
        return
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield name
            yield from _parts(value)
        elif isinstance(value, list) and value:
            yield from (name, len(value))
            for item in value:
                if isinstance(item, ast.AST):
                    yield from _parts(item)
                else:
                    yield item
        elif value is not None and not isinstance(value, list):
            yield from (name, value)
    yield ")"


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string.lstrip("#").strip() for token in tokens if token.type == tokenize.COMMENT]
