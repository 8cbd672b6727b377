"""Changes to a source where it stands: pieces are replaced, whole lines taken out, and no line changes its number."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator

from kernel_lsp.generators.blocks import parsed_or_none

Function = ast.FunctionDef | ast.AsyncFunctionDef

_CUDA = re.compile(r"cuda(?::\d+)?")
#: statements that only cost time
_IDLE_CALLS = {"torch.cuda.synchronize", "torch.cuda.empty_cache"}


class Source:
    """A source that parses, and the changes to be made to it.

    Attributes:
        lines: as they are.
        tree: of it.
        gone: 1-based numbers of lines that are to be left out.
    """

    def __init__(self, text: str) -> None:
        """Parse ``text``, with tabs at the start of lines as spaces.

        Raises:
            SyntaxError: it does not parse.
        """
        if "\t" in text:
            spaced = re.sub(r"(?m)^[ \t]+", lambda m: m[0].replace("\t", "    "), text)
            text = spaced if parsed_or_none(spaced) else text
        self.lines = text.split("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(text)
        self.gone: set[int] = set()
        self._changes: dict[tuple[int, int], tuple[int, int, str]] = {}

    def at(self, line: int, column: int) -> tuple[int, int]:
        """(line, character) for a position of the tree, which counts bytes."""
        text = self.lines[line - 1]
        return line, column if text.isascii() else len(text.encode()[:column].decode("utf-8", "ignore"))

    def start(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """(line, character) at which a node begins."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """(line, character) after a node's last."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Put ``text``, which has no line ends, in the place of what is between; its line ends stay behind it."""
        self._changes[start] = (*end, text)

    def rename(self, node: ast.stmt, word: str, old: str, new: str) -> None:
        """A new name for a function (``word`` is "def") or class."""
        line = self.lines[node.lineno - 1]
        found = re.compile(rf"{word}\s+({re.escape(old)})\b").search(line, self.start(node)[1])
        if found:
            self.replace((node.lineno, found.start(1)), (node.lineno, found.end(1)), new)

    def remove(self, statement: ast.stmt, body: list[ast.stmt]) -> None:
        """Take a statement of ``body`` out."""
        (first, begin), (last, end) = self.start(statement), self.end(statement)
        rest = self.lines[last - 1][end:].strip()
        alone = not self.lines[first - 1][:begin].strip() and (not rest or rest.startswith("#"))
        left = [s for s in body if s is not statement and s.lineno not in self.gone]
        if alone and left:
            self.gone.update(range(first, last + 1))
        else:
            self.replace((first, begin), (last, end), "pass")

    def changed(self) -> list[str]:
        """The lines with all changes made, those that are gone among them."""
        lines = [*self.lines]
        # From the last to the first; a change inside another one is lost with what it stood in.
        taken: list[tuple[tuple[int, int], tuple[int, int]]] = []
        for start in sorted(self._changes):
            end_line, end, _ = self._changes[start]
            if not any(a <= start < b for a, b in taken[-1:]):
                taken.append((start, (end_line, end)))
        for start, (end_line, end) in reversed(taken):
            text = self._changes[start][2]
            line, begin = start
            if line == end_line:
                lines[line - 1] = lines[line - 1][:begin] + text + lines[line - 1][end:]
            else:
                lines[line - 1] = lines[line - 1][:begin] + text
                lines[end_line - 1] = lines[end_line - 1][end:]
                lines[line : end_line - 1] = [""] * (end_line - 1 - line)
        return lines

    def piece(self, lines: list[str], node: ast.stmt, indentation: int) -> str:
        """A statement in ``lines``, the changed ones, with its decorators and the comments above, moved."""
        before = self.lines[node.lineno - 1][: node.col_offset]
        if before.strip() and not getattr(node, "decorator_list", []):
            return textwrap.indent(ast.unparse(node), " " * indentation)  # not the first statement on its line
        last = node.end_lineno or node.lineno
        return self.moved(lines, self.first_line(node), last, node.col_offset, indentation)

    def first_line(self, node: ast.stmt, after: int = 0) -> int:
        """Where a statement begins, with its decorators and the comments right above, but after a line."""
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        while first - 1 > after and self.lines[first - 2].lstrip().startswith("#"):
            first -= 1
        return first

    def moved(self, lines: list[str], first: int, last: int, old: int, new: int) -> str:
        """Lines ``first`` to ``last`` of ``lines`` moved from one indentation to another, as far as they have it."""
        kept = []
        for number in range(first, last + 1):
            if number in self.gone:
                continue
            line = lines[number - 1]
            depth = len(line) - len(line.lstrip(" "))
            kept.append(line if not line.strip() or depth < old else " " * new + line[old:])
        return "\n".join(kept)


def is_jit(node: ast.AST) -> bool:
    """Whether a function is a Triton kernel."""
    decorators = getattr(node, "decorator_list", [])
    return any(dotted(d.func if isinstance(d, ast.Call) else d).split(".")[-1] == "jit" for d in decorators)


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for names and their attributes, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def host_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a tree that Triton does not compile."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not is_jit(node):
            yield node
            waiting += ast.iter_child_nodes(node)


def on_the_tensors_device(source: Source) -> None:
    """CUDA by name becomes ``_DEVICE``, where the envelope has made sure that the tensors are; checks of it go.

    Under Triton's interpreter that is the CPU.
    """
    for node in host_nodes(source.tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                for statement in [s for s in body if isinstance(s, ast.stmt) and _is_idle(s)]:
                    source.remove(statement, body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CUDA.fullmatch(node.value):
            source.replace(source.start(node), source.end(node), "_DEVICE")
        elif isinstance(node, ast.keyword) and node.arg == "device" and isinstance(node.value, ast.Call):
            if dotted(node.value.func) == "torch.cuda.current_device":
                source.replace(source.start(node.value), source.end(node.value), "_DEVICE")
        elif isinstance(node, ast.Attribute) and node.attr == "is_cuda":
            source.replace(source.start(node), source.start(node), "(")
            source.replace(source.end(node.value), source.end(node), ".device.type == _DEVICE)")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            source.replace(source.end(node.func.value), source.end(node), "")


def _is_idle(statement: ast.stmt) -> bool:
    """Asserts about the device, which the envelope has looked at, and calls that only wait."""
    if isinstance(statement, ast.Assert):
        words = {n.attr for n in ast.walk(statement.test) if isinstance(n, ast.Attribute)}
        return bool(words & {"is_cuda", "device", "is_contiguous"})
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func) in _IDLE_CALLS
