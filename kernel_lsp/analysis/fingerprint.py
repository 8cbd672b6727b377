"""The fingerprint of a class: a hash of it and of everything in the workspace that it can reach.

A class reaches the module-level names that it mentions (base classes, functions, constants, other modules),
what those mention, and so on through imports, plus what the files on that way do at import time (module-level
calls and assignments to attributes). Names are followed by spelling, so a local variable called like a function
of the file reaches it, too: the fingerprint may change once too often, never once too seldom.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

from tree_sitter import Node

from ..errors import ClassNotFound
from .digest import References, digest
from .outline import Import, hash_of, imports, outlined
from .resolve import Read, Resolver
from .syntax import Source, node_text, parse

_MAIN = re.compile(rb"""^\(?\s*(__name__\s*==\s*(['"])__main__\2|(['"])__main__\3\s*==\s*__name__)\s*\)?$""")
_DEFINITIONS = frozenset({"function_definition", "class_definition", "decorated_definition"})
_COMPOUND = frozenset(
    {"if_statement", "try_statement", "with_statement", "for_statement", "while_statement", "match_statement"}
)
_HARMLESS = frozenset({"comment", "pass_statement", "future_import_statement", "global_statement", "ERROR"})


_T = TypeVar("_T")
Place = tuple[Node, bytes]  # a node and the bytes that its offsets count in


@dataclass(frozen=True, slots=True)
class Index:
    """What one statement at the margin binds, and whether it does more than that when the file is imported."""

    names: tuple[str, ...]
    imports: tuple[tuple[str, Import], ...]
    stars: tuple[str, ...]
    acts: bool


def _by_hash(limit: int) -> Callable[[Callable[[bytes], _T]], Callable[[bytes], _T]]:
    """Remember what a function makes of a text, up to ``limit`` texts, without the texts: a user types thousands."""

    def decorate(function: Callable[[bytes], _T]) -> Callable[[bytes], _T]:
        known: dict[bytes, _T] = {}

        @wraps(function)
        def remembered(text: bytes) -> _T:
            key = hash_of(text)
            if key not in known:
                if len(known) >= limit:
                    known.clear()
                known[key] = function(text)
            return known[key]

        return remembered

    return decorate


@_by_hash(limit=20_000)
def index_of(text: bytes) -> Index:
    """The index of a statement's text; remembered, so that an edit costs its own statement."""
    return _Indexer(text).index


@_by_hash(limit=20_000)
def digest_of(text: bytes) -> tuple[bytes, References]:
    """The digest of a statement's text and what it refers to."""
    return digest(parse(text).root_node, text)


class Units:
    """The statements at a file's margin by the names they bind, and those that act at import time."""

    def __init__(self, source: Source) -> None:
        data = source.data
        outlined(source)
        spans = source.pieces.spans if source.pieces is not None else None
        if spans is None:  # a syntax error somewhere: as the parser divides the file then
            spans = [(node.start_byte, node.end_byte) for node in source.tree.root_node.named_children]
        self.statements: dict[str, list[bytes]] = {}
        self.imports: dict[str, list[Import]] = {}
        self.stars: list[str] = []
        self.effects: list[bytes] = []
        for start, end in spans:
            text = data[start:end]
            index = index_of(text)
            for name in index.names:
                self.statements.setdefault(name, []).append(text)
            for name, target in index.imports:
                self.imports.setdefault(name, []).append(target)
            self.stars += index.stars
            if index.acts:
                self.effects.append(text)

    def find_class(self, class_name: str) -> tuple[list[Place], list[Place]]:
        """The statements of a dotted class name, and the bodies of the classes around them."""
        first, *rest = class_name.split(".")
        found: list[Place] = []
        for text in self.statements.get(first, []):
            found += [(node, text) for node in _classes(parse(text).root_node, first, text)]
        around: list[Place] = []
        for name in rest:
            bodies = [(b, text) for c, text in found if (b := _definition(c).child_by_field_name("body")) is not None]
            around += bodies
            found = [(inner, text) for body, text in bodies for inner in _classes(body, name, text)]
        return found, around


class _Indexer:
    """Makes the index of one statement."""

    def __init__(self, text: bytes) -> None:
        self.data = text
        self.imports: list[tuple[str, Import]] = []
        self.stars: list[str] = []
        names: dict[str, None] = {}
        acts = False
        for statement in parse(text).root_node.named_children:
            kind = statement.type
            if kind in _COMPOUND:
                if kind == "if_statement" and self._is_main_guard(statement):
                    continue
                acts = acts or self._has_effect(statement)
            elif kind not in _DEFINITIONS and kind not in _HARMLESS:
                acts = acts or self._acts(statement)
            names |= dict.fromkeys(self.bound(statement))
        self.index = Index(tuple(names), tuple(self.imports), tuple(self.stars), acts)

    def _is_main_guard(self, statement: Node) -> bool:
        condition = statement.child_by_field_name("condition")
        return condition is not None and _MAIN.match(self.data[condition.start_byte : condition.end_byte]) is not None

    def _has_effect(self, node: Node) -> bool:
        """Whether a compound statement does more at import than bind names."""
        for child in node.named_children:
            kind = child.type
            if kind in _DEFINITIONS or kind in _HARMLESS:
                continue
            if kind.endswith("_statement") and kind not in _COMPOUND:
                if self._acts(child):
                    return True
            elif (kind in _COMPOUND or kind == "block" or kind.endswith("_clause")) and self._has_effect(child):
                return True
        return False

    def _acts(self, statement: Node) -> bool:
        if statement.type in ("import_statement", "import_from_statement", "type_alias_statement"):
            return False
        if statement.type != "expression_statement":
            return True
        return any(self._expression_acts(child) for child in statement.named_children)

    def _expression_acts(self, node: Node) -> bool:
        """Whether an expression or assignment at module level does more than bind plain names."""
        if node.type not in ("assignment", "augmented_assignment"):
            return node.type not in ("string", "concatenated_string", "comment", "ellipsis")
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or any(target.type != "identifier" for target in _targets(left)):
            return True
        return right is not None and right.type == "assignment" and self._expression_acts(right)

    def bound(self, node: Node) -> Iterator[str]:
        """The names that a module-level statement binds, directly or in its blocks."""
        kind = node.type
        if kind in _DEFINITIONS:
            definition = node.child_by_field_name("definition") or node
            name = definition.child_by_field_name("name")
            if name is not None:
                yield node_text(name, self.data)
        elif kind in ("import_statement", "import_from_statement"):
            for bound, target in imports(node, self.data):
                if bound == "*":
                    self.stars.append(target.module)
                else:
                    self.imports.append((bound, target))
                    if node.parent is not None and node.parent.type != "module":
                        yield bound  # the condition that it stands under belongs to it
        elif kind in ("assignment", "augmented_assignment", "for_statement", "type_alias_statement"):
            left = node.child_by_field_name("left")
            for target_node in _targets(left) if left is not None else []:
                if target_node.type == "identifier":
                    yield node_text(target_node, self.data)
            for child in node.named_children:
                yield from self.bound(child)
        elif kind in _COMPOUND or kind in ("expression_statement", "block") or kind.endswith("_clause"):
            for child in node.named_children:
                yield from self.bound(child)
        elif kind in ("as_pattern_target", "named_expression"):
            for child in node.named_children[:1]:
                yield node_text(child, self.data)
        elif kind in ("with_item", "as_pattern"):
            for child in node.named_children:
                yield from self.bound(child)


def _definition(statement: Node) -> Node:
    return statement.child_by_field_name("definition") or statement


def _classes(node: Node, name: str, data: bytes) -> Iterator[Node]:
    for child in node.named_children:
        definition = _definition(child) if child.type == "decorated_definition" else child
        if definition.type == "class_definition":
            called = definition.child_by_field_name("name")
            if called is not None and node_text(called, data) == name:
                yield child
        elif child.type in _COMPOUND or child.type in ("block", "ERROR") or child.type.endswith("_clause"):
            yield from _classes(child, name, data)


def _targets(node: Node) -> Iterator[Node]:
    if node.type in ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"):
        for child in node.named_children:
            yield from _targets(child)
    else:
        yield node


def units_of(source: Source) -> Units:
    """The units of a source that is kept; made anew after an edit only."""
    if source.units is None:
        source.units = Units(source)
    found: Units = source.units
    return found


@lru_cache(maxsize=32)
def _units_of_text(text: str) -> Units:
    return Units(Source(text))


def fingerprint_of(source: str | Source, path: Path, class_name: str, read: Read) -> str:
    """See ``analysis.fingerprint``; a ``Source`` that is kept spares parsing it again.

    Raises:
        ClassNotFound: the source has no such class.
    """
    own = units_of(source) if isinstance(source, Source) else _units_of_text(source)
    found, around = own.find_class(class_name)
    imported = not found and class_name.split(".")[0] in own.imports
    if not found and not imported:
        raise ClassNotFound(class_name=class_name, path=str(path))
    resolver = Resolver(read)
    records: set[str] = set()
    seen: set[tuple[Path, str]] = set()
    reached_files: set[Path] = set()
    todo: list[tuple[Path, str]] = []

    def units(file: Path) -> Units | None:
        if file == path:
            return own
        text = resolver.read(file)
        return None if text is None else _units_of_text(text)

    def include(file: Path, label: str, parts: list[tuple[bytes, References]]) -> None:
        total = hashlib.sha256()
        for part, references in parts:
            total.update(part)
            for reference in sorted(references, key=repr):
                if isinstance(reference, str):
                    todo.append((file, reference))
                else:
                    follow(file, reference, reference.name or reference.module, "")
        records.add(f"{label} {total.hexdigest()}")

    def enter(file: Path, of_file: Units) -> None:
        if file not in reached_files:
            reached_files.add(file)
            if of_file.effects:
                include(file, "effects", [digest_of(text) for text in of_file.effects])

    def follow(file: Path, target: Import, head: str, rest: str) -> None:
        for other, name in resolver.places(file, target, head, rest):
            of_other = units(other)
            if of_other is None:
                continue
            if name:
                todo.append((other, name))
            else:  # the module as a value: anything in it may be used
                enter(other, of_other)
                todo.extend((other, each) for each in [*of_other.statements, *of_other.imports])

    if around:
        for label, part in _mentioned_around(found, around):
            include(path, label, [part])
    if imported:  # the class stands elsewhere: in the workspace its source counts, in a package its name
        todo.append((path, class_name))
    include(path, f"class {class_name}", [digest(*place) for place in found])
    enter(path, own)
    while todo:
        file, chain = todo.pop()
        if (file, chain) in seen:
            continue
        seen.add((file, chain))
        of_file = units(file)
        if of_file is None:
            continue
        head, _, rest = chain.partition(".")
        known = False
        if head in of_file.statements:
            known = True
            enter(file, of_file)
            if (file, "=" + head) not in seen:
                seen.add((file, "=" + head))
                include(file, head, [digest_of(text) for text in of_file.statements[head]])
        for target in of_file.imports.get(head, []):
            known = True
            records.add(f"import {head} {target.module} {target.name}")
            follow(file, target, head, rest)
        if not known:
            for module in of_file.stars:
                records.add(f"star {module}")
                other = resolver.file(module, file)
                if other is not None:
                    todo.append((other, chain))
    return "sha256:" + hashlib.sha256("\n".join(sorted(records)).encode("utf-8", "replace")).hexdigest()


def _mentioned_around(found: list[Place], around: list[Place]) -> Iterator[tuple[str, tuple[bytes, References]]]:
    """What a nested class mentions of the class bodies around it (a base class beside it, a constant)."""
    names = {name.partition(".")[0] for place in found for name in digest(*place)[1] if isinstance(name, str)}
    inside = {node.id for node, _ in found}
    for body, text in around:
        indexer = _Indexer(text)
        for statement in body.named_children:
            bound = set(indexer.bound(statement))
            if statement.id not in inside and bound & names:
                yield "beside " + " ".join(sorted(bound)), digest(statement, text)
