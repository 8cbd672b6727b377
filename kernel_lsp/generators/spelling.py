"""A kernel file whose envelope says by what path it finds each module and tensor, as ``adapting`` compares and replaces them.

The synthesizer's envelopes give them names and look them up in nn.Module's dictionaries (``envelope/lookups.py``):
``type(conv := self._modules["conv"]) is torch.nn.Conv2d and conv.stride == (1, 1)``. Here that becomes
``type(self.conv) is torch.nn.Conv2d and self.conv.stride == (1, 1)`` again. Tensors keep their names.
"""

from __future__ import annotations

import ast

from kernel_lsp.generators.edits import Edits
from kernel_lsp.naming import attribute


def spelled_out(source: str) -> str:
    """The same file without names for modules in ``_in_envelope``.

    Raises:
        SyntaxError, ValueError: it does not parse.
    """
    edits = Edits(source)
    for node in edits.tree.body:
        for method in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and method.name == "_in_envelope":
                _spell_out(method, edits)
    return edits.text()


def _spell_out(method: ast.FunctionDef, edits: Edits) -> None:
    paths: dict[str, str] = {}  # name → the path of the module that it stands for
    looked_up: set[ast.AST] = set()  # what is replaced together with what it is part of
    named = [node for node in ast.walk(method) if isinstance(node, ast.NamedExpr)]
    for node in sorted(named, key=edits.start):
        path = _path(node.value, paths)
        if path is None:
            continue
        if _container(node.value) == "_modules":
            paths[node.target.id] = path
            edits.replace(edits.place(node), attribute(path))
        else:
            edits.replace(edits.place(node.value), attribute(path))
    values = {one.value for one in named}
    for expression in (node for node in ast.walk(method) if isinstance(node, ast.Subscript) and node not in values):
        path = _path(expression, paths)
        if path is not None:  # in a table of tensors, which have no names there
            edits.replace(edits.place(expression), attribute(path))
            looked_up.update(ast.walk(expression))
    for use in ast.walk(method):
        if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.id in paths and use not in looked_up:
            edits.replace(edits.place(use), attribute(paths[use.id]))


def _container(node: ast.expr) -> str:
    """``_modules`` of ``x._modules["key"]``; "" of anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return ""
    found = node.value.attr if node.value.attr in ("_modules", "_parameters", "_buffers") else ""
    return found if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) else ""


def _path(node: ast.expr, paths: dict[str, str]) -> str | None:
    """The path, as state_dict has it, that a look-up in such a dictionary leads to; None of anything else."""
    if not _container(node):
        return None
    assert isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
    assert isinstance(node.slice, ast.Constant)
    owner = node.value.value
    if not isinstance(owner, ast.Name) or (owner.id != "self" and owner.id not in paths):
        return None
    return ".".join(filter(None, [paths.get(owner.id, ""), str(node.slice.value)]))
