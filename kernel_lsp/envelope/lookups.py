"""Conditions that look each module and tensor up once, in the dictionaries that nn.Module has them in.

An attribute of nn.Module that is a module, a parameter or a buffer takes a microsecond to find, also where it is None, one in a
ModuleList two, and a condition is one of many. An entry of ``_modules`` takes a twentieth of that.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
from dataclasses import dataclass

import torch

from kernel_lsp.naming import attribute

from .sharing import several_names

_TAKEN = frozenset([*dir(builtins), *keyword.kwlist, "self", "torch", "triton", "tl", "libdevice", "m"])


@dataclass(frozen=True)
class _Place:
    """Where a module or tensor is found: under ``key`` in ``container`` of its owner, whose Python is ``owner``.

    ``name``: what it is called from then on; "" of what is looked at once: a bias and the like that is None, and a tensor that is
    no argument of the host function, or a module under another name than its first, where these have several names.
    """

    name: str
    owner: str
    container: str
    key: str


def looked_up_once(
    conditions: list[str], module: torch.nn.Module, tensors: dict[str, str], taken: set[str], *, named: bool = True
) -> list[str]:
    """The conditions, and comments, with names for what they look at, given where it is first asked for its type.

    ``tensors``: the Python of those that are looked up there, with their names; modules are named after their path. ``taken``:
    names that mean something else there. ``named``: whether tensors get names; else each is looked at once.
    """
    places = _places(module, tensors, taken)
    names: dict[str, str] = {}  # Python of what has a name by now
    unnamed = frozenset(source for source, place in places.items() if not place.name)
    unnamed |= frozenset() if named else frozenset(map(_normal, tensors))
    return [text if text.startswith("#") else _with_names(text, places, names, unnamed) for text in conditions]


def _places(module: torch.nn.Module, tensors: dict[str, str], taken: set[str]) -> dict[str, _Place]:
    used = {*_TAKEN, *taken, *tensors.values()}
    found: dict[str, _Place] = {}
    shared = {source for first, others in several_names(module).items() for source in (first, *others)}
    for path, child in module.named_modules():
        owner, _, key = path.rpartition(".")
        if path:
            name = fresh(path, used)
            found[_normal(attribute(path))] = _Place(name, _normal(attribute(owner)), "_modules", key)
        for container in ("_parameters", "_buffers", "_modules"):
            for key, value in getattr(child, container).items():
                source = attribute(f"{path}.{key}" if path else key)
                if value is None or source in tensors or source in shared:
                    name = tensors.get(source, "")
                    found[_normal(source)] = _Place(name, _normal(attribute(path)), container, key)
    return found


def fresh(path: str, used: set[str]) -> str:
    """A name after ``path`` that is not in ``used``, to which it is added."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in path)
    name = name if name.isidentifier() else f"_{name}"
    while name in used:
        name += "_"
    used.add(name)
    return name


@functools.lru_cache(maxsize=1 << 14)  # of a deep network thousands, again for each candidate
def _normal(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))


def _with_names(condition: str, places: dict[str, _Place], names: dict[str, str], unnamed: frozenset[str]) -> str:
    changes: list[tuple[int, int, str]] = []
    text = condition.encode()  # the tree counts bytes

    def look(node: ast.AST, asked: bool) -> None:
        """``asked``: the node is what ``type`` is asked of."""
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            source = _normal(text[node.col_offset : node.end_col_offset].decode())
            if source not in names and source in places and (asked or source in unnamed):
                place = places[source]
                owner = names.get(place.owner, place.owner)
                new = f'{owner}.{place.container}["{place.key}"]'
                if source not in unnamed:
                    new, names[source] = f"{place.name} := {new}", place.name
                changes.append((node.col_offset, node.end_col_offset or 0, new))
                return
            if source in names:
                changes.append((node.col_offset, node.end_col_offset or 0, names[source]))
                return
        asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
        for inner in ast.iter_child_nodes(node):
            look(inner, asks)

    look(ast.parse(condition, mode="eval").body, False)
    for begin, end, new in sorted(changes, reverse=True):
        text = text[:begin] + new.encode() + text[end:]
    return text.decode()
