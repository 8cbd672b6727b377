"""A syntax tree as a digest that formatting, comments and docstrings do not change, and everything else does.

Two ways to write the same thing give one digest: redundant parentheses, trailing commas, quotes, number
notation, line breaks, implicit string concatenation, ``pass`` beside other statements, ``class A():``.
"""

from __future__ import annotations

import ast
import hashlib
import warnings

from tree_sitter import Node

from .outline import Import, imports
from .syntax import dotted, node_text

#: What a piece of code refers to: dotted names, and what it imports for itself.
References = frozenset[str | Import]

_SKIPPED = frozenset({"comment", "line_continuation", "pass_statement"})
_PUNCTUATION = frozenset({"(", ")", ",", ";"})  # the tree's structure says the same
_SAME = {"expression_list": "tuple", "pattern_list": "tuple_pattern"}
_ONE_MATTERS = frozenset({"subscript", "type_parameter"})  # x[a,] is not x[a]
_STRINGS = frozenset({"string", "concatenated_string"})

_known: dict[bytes, tuple[bytes, References]] = {}
_KNOWN_LIMIT = 20_000


def digest(node: Node, data: bytes) -> tuple[bytes, References]:
    """The digest of a node and what it refers to; remembered by its text, so that an edit costs its own statement."""
    if node.has_error:
        return _digest(node, data)
    key = hashlib.blake2b(data[node.start_byte : node.end_byte], digest_size=16, person=_person(node)).digest()
    found = _known.get(key)
    if found is None:
        if len(_known) >= _KNOWN_LIMIT:
            _known.clear()
        found = _known[key] = _digest(node, data)
    return found


def _person(node: Node) -> bytes:
    return node.kind_id.to_bytes(4, "big")


def _digest(root: Node, data: bytes) -> tuple[bytes, References]:
    out = hashlib.sha256()
    names: set[str | Import] = set()
    stack: list[Node | bytes] = [root]
    while stack:  # not recursive: a sum of a thousand terms is a thousand levels deep
        item = stack.pop()
        if isinstance(item, bytes):
            out.update(item)
            continue
        kind = item.type
        if kind in _SKIPPED or _is_bare_string(item):
            continue
        if not item.is_named:
            if kind not in _PUNCTUATION:
                out.update(b" ".join(data[item.start_byte : item.end_byte].split()) + b"\0")
        elif kind in ("import_statement", "import_from_statement"):
            for bound, target in imports(item, data):
                out.update(f"import {bound} {target.module} {target.name}\0".encode("utf-8", "replace"))
                names.add(target)
        elif kind in ("identifier", "attribute", "dotted_name") and (name := dotted(item, data)) is not None:
            out.update(name.encode("utf-8", "surrogatepass") + b"\0")
            names.add(name)
        elif kind in _STRINGS:
            stack.extend(reversed(_string(item, data)))
        elif kind in ("integer", "float"):
            out.update(_number(node_text(item, data)))
        elif _is_transparent(item):
            stack.extend(reversed(item.named_children))
        elif not item.child_count:
            out.update(f"{kind} {node_text(item, data)}\0".encode("utf-8", "replace"))
        else:
            out.update(f"({_SAME.get(kind, kind)}\0".encode())
            stack.append(b")")
            stack.extend(reversed(_children(item, data)))
    return out.digest(), frozenset(names)


def _children(node: Node, data: bytes) -> list[Node | bytes]:
    kind = node.type
    children: list[Node | bytes] = list(node.children)
    if kind == "keyword_argument":
        name = node.child_by_field_name("name")
        if name is not None:  # not a reference
            children[0] = data[name.start_byte : name.end_byte] + b"\0"
    elif kind == "attribute":  # of a call or the like: the attribute's name is not a reference
        children[-1] = b"." + data[node.children[-1].start_byte : node.children[-1].end_byte] + b"\0"
    elif kind == "class_definition":
        children = [c for c in node.children if not (c.type == "argument_list" and not _operands(c))]
    elif kind == "call":
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.type == "generator_expression":
            children = [node.children[0], b"(argument_list\0", arguments, b")"]
    elif kind in _ONE_MATTERS and _has_comma(node) and _element_count(node) == 1:
        children.append(b",\0")
    return children


def _operands(node: Node) -> list[Node]:
    return [c for c in node.named_children if c.type not in _SKIPPED]


def _element_count(node: Node) -> int:
    return len(node.children_by_field_name("subscript") or _operands(node))


def _has_comma(node: Node) -> bool:
    return any(c.type == "," for c in node.children)


def _is_transparent(node: Node) -> bool:
    if node.type in ("parenthesized_expression", "case_pattern"):
        return True
    return node.type == "tuple_pattern" and len(_operands(node)) == 1 and not _has_comma(node)


def _is_bare_string(node: Node) -> bool:
    """A docstring, or a string that stands as a statement elsewhere: neither does anything."""
    if node.type != "expression_statement":
        return False
    inner = _operands(node)
    while len(inner) == 1 and inner[0].type == "parenthesized_expression":
        inner = _operands(inner[0])
    return len(inner) == 1 and inner[0].type in _STRINGS and not _has_interpolation(inner[0])


def _has_interpolation(node: Node) -> bool:
    return any(c.type == "interpolation" or (c.type == "string" and _has_interpolation(c)) for c in node.children)


def _string(node: Node, data: bytes) -> list[Node | bytes]:
    """A string, or several side by side, as literal text and interpolations in turn."""
    strings = [c for c in node.named_children if c.type == "string"] if node.type == "concatenated_string" else [node]
    parts: list[Node | str | bytes] = []
    for one in strings:
        if _has_interpolation(one):
            raw = b"r" in data[one.start_byte : one.end_byte].split(b"'", 1)[0].split(b'"', 1)[0].lower()
            for child in one.named_children:
                if child.type == "interpolation":
                    parts.append(child)
                elif child.type == "string_content":
                    parts.append(_content(node_text(child, data), raw))
        else:
            parts.append(_literal(node_text(one, data)))
    merged: list[Node | bytes] = [b"string\0"]
    pending: str | bytes | None = None
    for part in [*parts, None]:
        if isinstance(part, str) and isinstance(pending, str):
            pending += part
            continue
        if isinstance(part, bytes) and isinstance(pending, bytes):
            pending += part
            continue
        if pending is not None and (pending or len(parts) == 1):
            merged.append(f"{pending!r}\0".encode("utf-8", "backslashreplace"))
        pending = part if isinstance(part, (str, bytes)) else None
        if isinstance(part, Node):
            merged.append(part)
    return merged


def _literal(text: str) -> str | bytes:
    """The value of a string literal without interpolation; its text where Python would not take it."""
    bare = text.lstrip("fFtT") if "{" in text else text
    if bare != text or text[:1] in "fFtT" or text[1:2] in "fFtT":  # f"{{x}}": no interpolation, yet braces double
        text = text.replace("{{", "{").replace("}}", "}")
        prefix = (
            text[: min(i for i in (text.find("'"), text.find('"')) if i >= 0)] if "'" in text or '"' in text else ""
        )
        text = prefix.lower().replace("f", "").replace("t", "") + text[len(prefix) :]
    value = _evaluate(text)
    return value if isinstance(value, (str, bytes)) else text


def _content(text: str, raw: bool) -> str:
    """The text between two interpolations."""
    text = text.replace("{{", "{").replace("}}", "}").replace("\r\n", "\n").replace("\r", "\n")
    if raw:
        return text
    quoted = text.replace('\\"', '"').replace("\\'", "'").replace('"', '\\"')
    value = _evaluate(f'"""{quoted}"""')
    return value if isinstance(value, str) else text


def _number(text: str) -> bytes:
    return f"{_evaluate(text)!r}\0".encode()


def _evaluate(literal: str) -> object:
    """The value of a literal, or its text where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown escapes
            return ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return literal
