"""What edits need to know of a source: where a class is instantiated, and which names are bound."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from .outline import outlined
from .syntax import Source, dotted
from .text import Range


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


def bound_names(source: Source) -> set[str]:
    """The names that the file binds at module level."""
    found = outlined(source)
    return {c.name for c in found.classes} | found.functions | found.imports.keys() | found.aliases.keys()
