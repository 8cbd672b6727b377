"""The slice's text: statements cut out of their files as they stand, with the names they have here."""

from __future__ import annotations

import ast
import copy
import sys

from kernel_lsp.slicing.collect import Collection, Edit, Item, Name
from kernel_lsp.slicing.naming import import_lines


def module_text(collection: Collection, items: list[Item], names: dict[Name, str], ending: str) -> str:
    """Imports, ``items`` in order, ``ending``."""
    imports = "\n".join(import_lines(collection, names))
    if any(item.file.postponed for item in items):
        imports = f"from __future__ import annotations\n\n{imports}"
    parts = [imports.rstrip()]
    texts = [(item, statement_text(item, names)) for item in items]
    for i, (item, text) in enumerate(texts):
        if i and _short(item, text) and _short(*texts[i - 1]):
            parts[-1] += f"\n{text}"
        else:
            parts.append(text)
    return "\n\n\n".join(part for part in [*parts, ending] if part).strip() + "\n"


def _short(item: Item, text: str) -> bool:
    return "\n" not in text and not isinstance(item.statement, ast.ClassDef | ast.FunctionDef)


def statement_text(item: Item, names: dict[Name, str]) -> str:
    """One statement, out of its file, edited and without the indentation it had there."""
    if item.statement is None:
        assert item.made is not None
        return f"{names[item.keys[0]]} = {item.made.value}"
    file, statement = item.file, item.statement
    start, end = file.span(statement)
    edits = [*_whole_strings(item, names), *_dedent(item, start, end)]
    # Those of one place in the order they were made: insertions come before what they stand in front of.
    written, position = [], start
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < position:
            continue  # inside something that is replaced as a whole
        written.append(file.data[position : edit.start])
        written.append((names[edit.to] if edit.to is not None else edit.text).encode())
        position = edit.end
    written.append(file.data[position:end])
    return b"".join(written).decode("utf-8", "surrogatepass").strip("\n")


def _dedent(item: Item, start: int, end: int) -> list[Edit]:
    """Edits that take a statement's indentation off its lines, those inside strings excepted."""
    assert item.statement is not None
    file, indent = item.file, item.statement.col_offset
    if not indent or file.data[file.data.rfind(b"\n", 0, start) + 1 : start].strip():
        return []
    strings = [
        (file.start(node), file.end(node))
        for node in ast.walk(item.statement)
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno
    ]
    edits, line = [], start
    while line < end:
        if not any(a < line < b for a, b in strings):
            bare = line
            while bare < min(line + indent, end) and file.data[bare : bare + 1] in (b" ", b"\t"):
                bare += 1
            edits.append(Edit(line, bare))
        following = file.data.find(b"\n", line, end)
        if following < 0:
            break
        line = following + 1
    return edits


def _whole_strings(item: Item, names: dict[Name, str]) -> list[Edit]:
    """The edits that change something; those in f-strings as one of the whole, where positions in them are not right."""
    file = item.file
    edits: list[Edit] = []
    inside: dict[ast.JoinedStr, list[Edit]] = {}
    for edit in item.edits:
        if (
            edit.to is not None
            and edit.end > edit.start
            and file.data[edit.start : edit.end] == names[edit.to].encode()
        ):
            continue
        joined = _f_string(item, edit) if sys.version_info < (3, 12) else None
        if joined is None:
            edits.append(edit)
        elif edit.node is None or names[edit.to] != ast.unparse(edit.node):  # type: ignore[index]
            inside.setdefault(joined, []).append(edit)
    for joined, parts in inside.items():
        memo: dict[int, object] = {}
        other = copy.deepcopy(joined, memo)
        new = {id(memo[id(e.node)]): names[e.to] for e in parts if e.node is not None and e.to is not None}
        text = ast.unparse(_Renamer(new).visit(other))
        edits.append(Edit(file.start(joined), file.end(joined), text=text))
    return edits


def _f_string(item: Item, edit: Edit) -> ast.JoinedStr | None:
    """The outermost f-string around an edit's node."""
    found, node = None, edit.node
    while node is not None and node is not item.statement:
        if isinstance(node, ast.JoinedStr):
            found = node
        node = item.file.parents.get(node)
    return found


class _Renamer(ast.NodeTransformer):
    def __init__(self, new: dict[int, str]) -> None:
        self.new = new

    def visit(self, node: ast.AST) -> ast.AST:
        if id(node) in self.new:
            return ast.Name(self.new[id(node)], ast.Load())
        return self.generic_visit(node)
