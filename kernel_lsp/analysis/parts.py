"""Which classes of a file are parts of others there, and which its ``get_inputs()`` is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .syntax import Source, dotted

if TYPE_CHECKING:
    from .classes import ModuleClass

#: the function of example inputs that is named after no class
SHARED = "get_inputs"
#: what KernelBench calls the class that the functions of a file are for
MAIN = "Model"


def holders(source: Source, names: Iterable[str], classes: Sequence[ModuleClass]) -> dict[str, list[str]]:
    """Name → the classes that instantiate it, ``name(…)`` or ``name[…](…)``, other than itself, in the order of the text."""
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for name, line in _instantiated(source, found):
        around = [c.name for c in classes if c.whole_range.start.line <= line <= c.whole_range.end.line]
        if name not in around:
            found[name] |= dict.fromkeys(around)
    return {name: list(those) for name, those in found.items()}


def wholes(source: Source, classes: Sequence[ModuleClass]) -> dict[str, str]:
    """Part → the class that the file's ``get_inputs()`` is for instead, for the classes with no such function of their own.

    That one is a part of no other, or has KernelBench's name for it, ``Model``. Where all such classes have functions of
    their own, ``get_inputs()`` is for any class.
    """
    sharing = {c.name for c in classes if c.inputs == SHARED}
    if len(sharing) < 2:
        return {}
    holders_of = holders(source, [c.name for c in classes], classes)
    tops = [name for name in sharing if name == MAIN or not holders_of[name]]
    found = {name: next((one for one in _above(name, holders_of) if one in tops), None) for name in sharing - {MAIN}}
    return {name: whole for name, whole in found.items() if whole is not None}


def _above(name: str, holders_of: Mapping[str, Sequence[str]]) -> list[str]:
    """The classes that a class is a part of, the nearest first."""
    above = dict.fromkeys(holders_of[name])
    waiting = list(above)
    for one in waiting:
        further = [other for other in holders_of[one] if other not in above]
        above |= dict.fromkeys(further)
        waiting += further
    return [one for one in above if one != name]


def _instantiated(source: Source, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The names that are called, each with the line, from 0."""
    data, sorted_names = source.data, sorted(names, key=len, reverse=True)
    if not sorted_names:
        return
    wanted = b"|".join(re.escape(name.encode()) for name in sorted_names)
    for match in re.finditer(rb"(?<![\w.])(" + wanted + rb")\s*[(\[]", data):
        node = source.tree.root_node.descendant_for_byte_range(*match.span(1))
        called, call = node, node.parent if node is not None else None
        if call is not None and call.type == "subscript" and call.child_by_field_name("value") == node:  # of a generic
            called, call = call, call.parent
        if node is None or call is None or call.type != "call":
            continue
        name = match[1].decode()
        if dotted(node, data) == name and call.child_by_field_name("function") == called:
            yield name, source.range(node.start_byte, node.end_byte).start.line
