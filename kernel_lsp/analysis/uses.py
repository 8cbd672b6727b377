"""What the editor's edits need to know of a source: where a class is instantiated, and what its methods take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .fingerprint import units_of
from .outline import outlined
from .syntax import Source, dotted, node_text
from .text import Range


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function, ``self`` left out."""

    name: str
    annotation: str
    required: bool


def instantiations(source: Source, name: str) -> list[Range]:
    """The ranges of ``name`` in the calls ``name(…)``, outside the class of that name itself."""
    own = [c.header_bytes[0] for c in outlined(source).classes if c.name == name]
    return [source.range(node.start_byte, node.end_byte) for node in _calls(source, name, set(own))]


def _calls(source: Source, name: str, own: set[int]) -> Iterator[Node]:
    data = source.data
    stack = [source.tree.root_node]
    while stack:
        node = stack.pop()
        if node.start_byte in own and node.type in ("class_definition", "decorated_definition"):
            continue
        if node.type == "call":
            function = node.child_by_field_name("function")
            if function is not None and dotted(function, data) == name:
                yield function
        stack.extend(reversed(node.named_children))


def parameters(source: Source, class_name: str, method: str) -> list[Parameter]:
    """The parameters of a method that the class itself defines; none where it does not."""
    found, _ = units_of(source).find_class(class_name)
    for statement, data in found:
        definition = statement.child_by_field_name("definition") or statement
        body = definition.child_by_field_name("body")
        for member in body.named_children if body is not None else []:
            function = member.child_by_field_name("definition") or member
            name = function.child_by_field_name("name")
            if function.type == "function_definition" and name is not None and node_text(name, data) == method:
                listed = function.child_by_field_name("parameters")
                return [p for child in _named(listed) if (p := _parameter(child, data))][1:]
    return []


def _named(node: Node | None) -> list[Node]:
    return node.named_children if node is not None else []


def _parameter(node: Node, data: bytes) -> Parameter | None:
    """None for ``*``, ``/``, ``*args`` and ``**kwargs``."""
    if node.type == "identifier":
        return Parameter(node_text(node, data), "", True)
    if node.type not in ("typed_parameter", "default_parameter", "typed_default_parameter"):
        return None
    name = node.child_by_field_name("name") or next(iter(node.named_children), None)
    if name is None or name.type != "identifier":
        return None
    annotation = node.child_by_field_name("type")
    text = node_text(annotation, data) if annotation is not None else ""
    return Parameter(node_text(name, data), text, node.child_by_field_name("value") is None)


def bound_names(source: Source) -> set[str]:
    """The names that the file binds at module level."""
    found = outlined(source)
    return {c.name for c in found.classes} | found.functions | found.imports.keys() | found.aliases.keys()
