"""The classes of a document that derive from torch.nn.Module, and where their parts stand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from .outline import Outline, outlined
from .parts import SHARED, wholes
from .resolve import Read, Resolver, read_file
from .syntax import Source
from .text import Range


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """A class that derives from torch.nn.Module. Lines and columns (code points) are 0-based."""

    name: str  # dotted, for a nested class
    name_range: Range
    class_range: Range  # the class statement: its decorators up to the colon
    forward_range: Range | None  # the signature of its own forward: "def" up to the colon
    duplicate: bool  # the file defines the name more than once
    # the function in the file that gives example inputs; not get_inputs() where there is a ``whole``
    inputs: str | None
    whole_range: Range  # with the body
    whole: str | None = None  # the class, of which it is a part, that the file's get_inputs() is for


def identifier(class_name: str) -> str:
    """A dotted class name as part of a function name: ``Outer.Inner`` → ``Outer_Inner``."""
    return class_name.replace(".", "_")


def module_classes_of(source: Source, path: Path, read: Read) -> list[ModuleClass]:
    """The module classes of a parsed document, in the order of the text."""
    found = outlined(source)
    resolver = Resolver(read)
    resolver.add(path, found)
    classes = [
        ModuleClass(
            name=c.name,
            name_range=source.range(*c.name_bytes),
            class_range=source.range(*c.header_bytes),
            forward_range=source.range(*c.forward_bytes) if c.forward_bytes else None,
            duplicate=c.repeated,
            inputs=_inputs(found, c.name),
            whole_range=source.range(c.header_bytes[0], c.body_end),
        )
        for c in found.classes
        if resolver.is_module(path, c)
    ]
    parts = wholes(source, classes)
    return [replace(c, inputs=None, whole=parts[c.name]) if c.name in parts else c for c in classes]


def is_module_class(source: str, path: Path, class_name: str, read: Read = read_file) -> bool:
    """Whether the text shows that the class derives from torch.nn.Module. What an installed package defines is not looked at."""
    resolver = Resolver(read)
    resolver.add(path, outlined(Source(source)))
    return resolver.names_module(path, class_name)


def imported_with_inputs(source: str) -> list[str]:
    """The names that a file imports and has a ``get_inputs_<Name>`` for: modules of a package, with example inputs."""
    found = outlined(Source(source))
    return [name for name in found.imports if f"get_inputs_{name}" in found.functions]


def _inputs(found: Outline, class_name: str) -> str | None:
    bound = found.functions | found.imports.keys() | found.aliases.keys()
    own = f"get_inputs_{identifier(class_name)}"
    return next((n for n in (own, f"get_inputs_{class_name.rpartition('.')[2]}", SHARED) if n in bound), None)
