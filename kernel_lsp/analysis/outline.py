"""What one file defines at module level: classes with their bases, imports, functions, aliases.

Functions' bodies are not entered: what they define cannot be imported, so no kernel can be made for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from .margin_statements import Pieces, window
from .syntax import Source, dotted, node_text, parse

#: Statements whose blocks belong to the scope around them.
_COMPOUND = frozenset(
    {
        "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause", "except_group_clause",
        "finally_clause", "with_statement", "for_statement", "while_statement", "match_statement", "case_clause",
        "block", "ERROR",
    }
)  # fmt: skip
#: Of these, only one branch runs, so the same name in two of them is one class.
_BRANCHES = frozenset({"elif_clause", "else_clause", "except_clause", "case_clause", "block"})
_CLASS_LINE = re.compile(rb"(?:^|(?<=[\r\n]))class[ \t]+[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Import:
    """``from module import name`` (``name`` "*" for all of it), or ``import module`` (``name`` None).

    ``module`` is as written, with its leading dots. For ``import a.b`` without ``as`` the bound name is ``a``.
    """

    module: str
    name: str | None = None


@dataclass(slots=True)
class ClassOutline:
    """One class statement; offsets are bytes in the source's ``data``."""

    name: str  # dotted, for a nested class
    bases: tuple[str, ...]
    name_bytes: tuple[int, int]
    header_bytes: tuple[int, int]  # decorators up to the colon
    body_end: int
    forward_bytes: tuple[int, int] | None  # of the signature: "def" up to the colon
    branch: tuple[int, ...] = ()  # the blocks it stands in, innermost last: tells alternatives from repetitions
    repeated: bool = False


@dataclass(slots=True)
class Outline:
    """The names of one file."""

    classes: list[ClassOutline] = field(default_factory=list)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)  # modules imported with *
    functions: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)  # Base = nn.Module


def outline(source: Source) -> Outline:
    """The outline of a source; what an unfinished statement hides from the parser is looked for again."""
    if source.pieces is not None and _update(source, source.pieces):
        return _joined(source.pieces)
    source.pieces = None
    data = source.data
    root = source.tree.root_node
    if root.has_error:
        found = Outline()
        _scan(root, data, (), (), found)
        _recover(data, found)
        _mark_repeated(found.classes)
        return found
    statements = root.named_children
    source.pieces = Pieces([(n.start_byte, n.end_byte) for n in statements], [_piece(n, data) for n in statements])
    return _joined(source.pieces)


def _update(source: Source, pieces: Pieces) -> bool:
    """Bring the pieces up to date by looking at those around the edit; False where that is not enough."""
    if pieces.edited is None:
        return True
    data = source.data
    first, last, (begin, end) = window(pieces, data)
    part = data[begin:end]
    root = parse(part).root_node
    statements = root.named_children
    if root.has_error or (last < len(pieces.spans) and (not statements or statements[-1].end_byte != len(part))):
        return False
    moved = pieces.edited[2] - pieces.edited[1]
    fresh = [(n.start_byte + begin, n.end_byte + begin) for n in statements]
    after = [(start + moved, stop + moved) for start, stop in pieces.spans[last:]]
    pieces.spans = [*pieces.spans[:first], *fresh, *after]
    pieces.found[first:last] = [_piece(n, part) for n in statements]
    pieces.edited = None
    return True


def _joined(pieces: Pieces) -> Outline:
    whole = Outline()
    for (start, _), part in zip(pieces.spans, pieces.found, strict=True):
        whole.classes += [_moved(c, start) for c in part.classes]
        whole.functions |= part.functions
        whole.stars += part.stars
        whole.aliases |= part.aliases
        for name, targets in part.imports.items():
            whole.imports[name] = [*whole.imports.get(name, []), *targets]
    _mark_repeated(whole.classes)
    return whole


_known: dict[bytes, Outline] = {}  # the text of a piece → its outline, counted from 0
_KNOWN_LIMIT = 4000


def _piece(statement: Node, data: bytes) -> Outline:
    """The outline of one statement at the margin, offsets counted from its start; remembered by its text."""
    start = statement.start_byte
    key = hash_of(data[start : statement.end_byte])
    part = _known.get(key)
    if part is None:
        part = Outline()
        _statement(statement, data, (), (), part)
        part.classes = [_moved(c, -start) for c in part.classes]
        _remember(key, part)
    return part


def _remember(key: bytes, part: Outline) -> None:
    if len(_known) >= _KNOWN_LIMIT:
        _known.clear()
    _known[key] = part


def outlined(source: Source) -> Outline:
    """The outline of a source that is kept; made anew after an edit only."""
    if source.outline is None:
        source.outline = outline(source)
    found: Outline = source.outline
    return found


def _scan(node: Node, data: bytes, scope: tuple[str, ...], branch: tuple[int, ...], found: Outline) -> None:
    for child in node.named_children:
        _statement(child, data, scope, branch, found)


def _statement(node: Node, data: bytes, scope: tuple[str, ...], branch: tuple[int, ...], found: Outline) -> None:
    kind = node.type
    if kind in ("class_definition", "decorated_definition"):
        definition = node.child_by_field_name("definition") if kind == "decorated_definition" else node
        if definition is not None and definition.type == "class_definition":
            _class(node, definition, data, scope, branch, found)
        elif definition is not None and not scope:
            _function(definition, data, found)
    elif kind == "function_definition":
        if not scope:
            _function(node, data, found)
    elif kind in ("import_statement", "import_from_statement"):
        if not scope:
            _import(node, data, found)
    elif kind == "expression_statement":
        if not scope:
            _alias(node, data, found)
    elif kind in _COMPOUND:
        _scan(node, data, scope, (*branch, node.id) if kind in _BRANCHES else branch, found)


def hash_of(text: bytes) -> bytes:
    """A key that does not keep the text itself in memory."""
    return hashlib.blake2b(text, digest_size=16).digest()


def _moved(c: ClassOutline, by: int) -> ClassOutline:
    """A copy with every offset moved."""
    forward = c.forward_bytes
    return ClassOutline(
        name=c.name,
        bases=c.bases,
        name_bytes=(c.name_bytes[0] + by, c.name_bytes[1] + by),
        header_bytes=(c.header_bytes[0] + by, c.header_bytes[1] + by),
        body_end=c.body_end + by,
        forward_bytes=(forward[0] + by, forward[1] + by) if forward else None,
        branch=c.branch,
    )


def _class(
    statement: Node, node: Node, data: bytes, scope: tuple[str, ...], branch: tuple[int, ...], found: Outline
) -> None:
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name is None or name.is_missing:
        return
    if statement.start_point[1] == 0:
        scope = ()  # at the margin: inside nothing, whatever an unfinished line above makes of it
    path = (*scope, node_text(name, data))
    colon = next((c for c in node.children if c.type == ":"), None)
    header_end = colon.end_byte if colon is not None else name.end_byte
    forward = _forward(body) if body is not None else None
    signature = _signature(forward) if forward is not None else None
    found.classes.append(
        ClassOutline(
            name=".".join(path),
            bases=tuple(_bases(node, data)),
            name_bytes=(name.start_byte, name.end_byte),
            header_bytes=(statement.start_byte, header_end),
            body_end=node.end_byte,
            forward_bytes=signature,
            branch=branch,
        )
    )
    if body is not None:
        _scan(body, data, path, (), found)


def _bases(node: Node, data: bytes) -> Iterator[str]:
    arguments = node.child_by_field_name("superclasses")
    for base in arguments.named_children if arguments is not None else []:
        if base.type == "subscript":  # Base[T]
            base = base.child_by_field_name("value") or base
        elif base.type == "parenthesized_expression" and base.named_child_count == 1:
            base = base.named_children[0]
        name = dotted(base, data)
        if name is not None:
            yield name


def _forward(body: Node) -> Node | None:
    """The last ``def forward`` directly in a class body (or in an ``if`` of it)."""
    found = None
    for child in body.named_children:
        if child.type == "decorated_definition":
            child = child.child_by_field_name("definition") or child
        if child.type == "function_definition":
            name = child.child_by_field_name("name")
            if name is not None and name.text == b"forward":
                found = child
        elif child.type in _COMPOUND:
            found = _forward(child) or found
    return found


def _signature(function: Node) -> tuple[int, int]:
    colon = next((c for c in function.children if c.type == ":"), None)
    parameters = function.child_by_field_name("parameters")
    last = colon or parameters or function
    return function.start_byte, last.end_byte


def _function(node: Node, data: bytes, found: Outline) -> None:
    name = node.child_by_field_name("name")
    if name is not None:
        found.functions.add(node_text(name, data))


def imports(node: Node, data: bytes) -> Iterator[tuple[str, Import]]:
    """Each name that an import statement binds ("*" for all names), with what it is bound to."""
    module_node = node.child_by_field_name("module_name")
    module = "".join(node_text(module_node, data).split()) if module_node is not None else None
    if module is not None and any(child.type == "wildcard_import" for child in node.children):
        yield "*", Import(module, "*")
    for item in node.children_by_field_name("name"):
        alias = None
        if item.type == "aliased_import":
            alias = item.child_by_field_name("alias")
            item = item.child_by_field_name("name") or item
        name = "".join(node_text(item, data).split())
        bound = node_text(alias, data) if alias is not None else name
        if module is not None:
            yield bound, Import(module, name)
        elif alias is not None:
            yield bound, Import(name)
        else:
            yield name.split(".")[0], Import(name)


def _import(node: Node, data: bytes, found: Outline) -> None:
    for bound, target in imports(node, data):
        if bound == "*":
            found.stars.append(target.module)
        else:
            found.imports.setdefault(bound, []).append(target)


def _alias(statement: Node, data: bytes, found: Outline) -> None:
    for child in statement.named_children:
        if child.type == "assignment":
            left, right = child.child_by_field_name("left"), child.child_by_field_name("right")
            target = dotted(right, data) if right is not None else None
            if left is not None and left.type == "identifier" and target is not None:
                found.aliases[node_text(left, data)] = target


def _recover(data: bytes, found: Outline) -> None:
    """Classes at the margin that the parser lost to an unfinished statement: each is parsed by itself."""
    known = {at for c in found.classes for at in (c.header_bytes[0], data.rfind(b"\n", 0, c.name_bytes[0]) + 1)}
    for match in _CLASS_LINE.finditer(data):
        at = match.start()
        if at in known:
            continue
        piece = data[at : _next_statement(data, match.end())]
        key = hash_of(b"piece " + piece)
        part = _known.get(key)
        if part is None:
            part = _parse_piece(piece)
            _remember(key, part)
        found.classes += [_moved(c, at) for c in part.classes]
    found.classes.sort(key=lambda c: c.name_bytes)


def _parse_piece(piece: bytes) -> Outline:
    """The outline of one class statement; of its beginning, where the parser makes nothing of the whole."""
    lines = piece.splitlines(keepends=True)
    dropped = 0
    while True:
        text = b"".join(lines[: len(lines) - dropped])
        part = Outline()
        source = Source(text.decode("utf-8", "replace"))
        if len(source.data) != len(text):  # bytes that are no UTF-8: offsets would not fit
            return part
        _scan(source.tree.root_node, source.data, (), (), part)
        if part.classes or dropped >= len(lines) - 1:
            return part
        dropped = min(max(1, 2 * dropped), len(lines) - 1)


_MARGIN = re.compile(rb"(?<=[\r\n])[^\s#)\]}]")


def _next_statement(data: bytes, start: int) -> int:
    match = _MARGIN.search(data, start)
    return match.start() if match else len(data)


def _mark_repeated(classes: list[ClassOutline]) -> None:
    by_name: dict[str, list[ClassOutline]] = {}
    for c in classes:
        by_name.setdefault(c.name, []).append(c)
    for same in by_name.values():
        for i, one in enumerate(same):
            # Alternatives (if/else, try/except) stand in different blocks, neither inside the other.
            one.repeated = any(
                other.branch[: len(one.branch)] == one.branch or one.branch[: len(other.branch)] == other.branch
                for j, other in enumerate(same)
                if j != i
            )
