"""One kernel file of two that were written for two examples of a class: both their kernels, one class, an envelope for each.

What both define in the same words is kept once. What the second defines otherwise under the same name gets a number behind it.
"""

from __future__ import annotations

import ast
import copy
import re
import textwrap

from kernel_lsp import loading, packed_weights, why_eager
from kernel_lsp.generators.rewriting import Source
from kernel_lsp.naming import class_of, kernel_class

ENVELOPE = "_in_envelope"

#: statements before the test of an envelope: a replay begins, and what the kernels read is looked up
_BEFORE = 2
_TITLE = "in several envelopes, each with kernels of its own."


class NotJoined(Exception):
    """Why two kernels cannot share a file, as a clause."""


def envelopes(body: str) -> int:
    """How many envelopes a kernel file has, at least 1."""
    return max(1, len(re.findall(rf"^    def {ENVELOPE}(?:_\d+)?\(", body, re.MULTILINE)))


def joined(first: str, second: str, class_name: str) -> str:
    """The body of a kernel file that runs ``second`` where no envelope of ``first`` holds, and eager where none does.

    ``first``: may have been joined before. Neither what the pipelines add to both (``Run.completed``) nor their format is kept.

    Raises:
        NotJoined: a file is not of the form that the synthesizer writes.
    """
    try:
        one, two = _File(first, class_name), _File(second, class_name)
    except SyntaxError as error:
        raise NotJoined(f"a file does not parse: {error.msg}") from None
    number = len(one.envelopes) + 1
    if len(two.envelopes) > 1:
        raise NotJoined("the second file has several envelopes itself")
    if ast.unparse(one.cls.bases[0]) != ast.unparse(two.cls.bases[0]):
        raise NotJoined("their classes derive from different ones")
    if ast.dump(one.forward.args) != ast.dump(two.forward.args):
        raise NotJoined("their forwards have other parameters")
    two = _File("\n".join(_renamed(one, two, number)), class_name)
    there = {ast.dump(node) for node in one.others}
    new = [node for node in two.others if ast.dump(node) not in there]
    imports = [node for node in new if isinstance(node, ast.Import | ast.ImportFrom)]
    at = next((i for i, node in enumerate(one.others) if not isinstance(node, ast.Import | ast.ImportFrom)), 0)
    of_one, of_two = [(one, node) for node in one.others], [(two, node) for node in new if node not in imports]
    parts = [_docstring(one, two, number), ""]
    for file, node in [*of_one[:at], *((two, node) for node in imports), *of_one[at:], *of_two]:
        parts += [*([] if isinstance(node, ast.Import | ast.ImportFrom | ast.Assign) else [""]), file.piece(node)]
    return "\n".join([*parts, "", _class(one, two, number)]) + "\n"


class _File:
    """A kernel file of the form that the synthesizer writes: its class has forward and an envelope, and nothing else."""

    def __init__(self, body: str, class_name: str) -> None:
        self.source = Source(loading.from_one(why_eager.without(body)))
        body_of = self.source.tree.body
        self.doc = ast.get_docstring(self.source.tree, clean=False) or ""
        found = [node for node in body_of if isinstance(node, ast.ClassDef) and node.name == kernel_class(class_name)]
        if not found or len(found[0].bases) != 1:
            raise NotJoined("a file lacks its class")
        (self.cls,) = found
        self.others = [node for node in body_of if node is not self.cls and not _is_text(node)]
        methods = {node.name: node for node in self.cls.body if isinstance(node, ast.FunctionDef)}
        if any(not (isinstance(node, ast.FunctionDef) or _is_text(node)) for node in self.cls.body):
            raise NotJoined("its class holds more than methods")
        self.envelopes = {name: node for name, node in methods.items() if re.fullmatch(rf"{ENVELOPE}(_\d+)?", name)}
        if (
            methods.keys() - {"forward", packed_weights.METHOD, *self.envelopes}
            or "forward" not in methods
            or not self.envelopes
        ):
            raise NotJoined(f"its class has other methods than forward, {ENVELOPE} and {packed_weights.METHOD}")
        self.forward = methods["forward"]
        self.forget = methods.get(packed_weights.METHOD)

    def piece(self, node: ast.stmt) -> str:
        """The text of a statement, with the comments above it."""
        return self.source.piece(self.source.lines, node, node.col_offset)

    def defined(self) -> dict[str, list[ast.stmt]]:
        """Name → the functions, classes and assignments at the top that define it."""
        found: dict[str, list[ast.stmt]] = {}
        for node in self.others:
            names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                found.setdefault(name, []).append(node)
        return found

    def steps(self) -> list[ast.stmt]:
        """The statements of forward that run kernels where an envelope holds; after them comes eager.

        Raises:
            NotJoined: forward does not begin with its envelope.
        """
        body = [node for node in self.forward.body if not _is_text(node)]
        if _is_eager(body[-1]):  # joined before
            return body[:-1]
        for at, node in enumerate(body):
            if isinstance(node, ast.If) and len(node.body) == 1 and _is_eager(node.body[0]) and not node.orelse:
                rest, test = body[at + 1 :], node.test
                if at > _BEFORE or not rest or not isinstance(rest[-1], ast.Return) or not _negated(test):
                    break
                assert isinstance(test, ast.UnaryOp)
                return [*body[:at], ast.If(test.operand, rest, [])]
        raise NotJoined("its forward does not begin with its envelope")


def _negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_eager(node: ast.stmt) -> bool:
    called = node.value if isinstance(node, ast.Return) else None
    return isinstance(called, ast.Call) and ast.unparse(called.func) == "super().forward"


def _holds_state(node: ast.stmt) -> bool:
    """Whether an assignment makes something that calls fill: two kernels must not share it."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Dict | ast.List | ast.Set) or (
        isinstance(value, ast.Call) and not value.args and not value.keywords
    )


def _renamed(one: _File, two: _File, number: int) -> list[str]:
    """The lines of ``two`` where no name at its top, and no envelope, means something else in ``one``."""
    mine, theirs = one.defined(), two.defined()
    changed = set()
    for name in mine.keys() & theirs.keys():
        same = [*map(ast.dump, mine[name])] == [*map(ast.dump, theirs[name])]
        if not same or any(map(_holds_state, theirs[name])):
            changed.add(name)
    while True:  # what uses a changed one is another thing, too
        users = {
            name
            for name in (mine.keys() & theirs.keys()) - changed
            if any(_names(node) & changed for node in theirs[name])
        }
        if not users:
            break
        changed |= users
    taken = _identifiers(one.source.tree) | _identifiers(two.source.tree)
    new = {}
    for name in sorted(changed):
        new[name] = f"{name}_{number}"
        while new[name] in taken:
            new[name] += "_"
    for statement in [*two.others, two.cls]:
        _rename(two.source, statement, new)
    envelope = two.envelopes[ENVELOPE]
    two.source.rename(envelope, "def", ENVELOPE, f"{ENVELOPE}_{number}")
    for node in ast.walk(two.forward):
        if isinstance(node, ast.Attribute) and node.attr == ENVELOPE:
            two.source.replace(two.source.end(node.value), two.source.end(node), f".{ENVELOPE}_{number}")
    return two.source.changed()


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _identifiers(tree: ast.AST) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(tree)))


def _rename(source: Source, node: ast.AST, new: dict[str, str]) -> None:
    """Note other names for what ``new`` has, but for what a function has of its own under such a name."""
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        if node.name in new and node.col_offset == 0:
            source.rename(node, "def", node.name, new[node.name])
        new = {name: other for name, other in new.items() if name not in own}
    elif isinstance(node, ast.ClassDef) and node.name in new and node.col_offset == 0:
        source.rename(node, "class", node.name, new[node.name])
    elif isinstance(node, ast.Name) and node.id in new:
        source.replace(source.start(node), source.end(node), new[node.id])
    for inner in ast.iter_child_nodes(node):
        _rename(source, inner, new)


def _docstring(one: _File, two: _File, number: int) -> str:
    first = one.doc.strip() if number > 2 else f"{class_of(one.cls.name)} {_TITLE}\n\n1. {one.doc.strip()}"
    text = f"{first}\n\n{number}. {two.doc.strip()}".replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{text}\n"""'


def _forget(methods: list[ast.FunctionDef | None]) -> list[str]:
    """The method that drops what the kernels of all envelopes keep of weights, where one keeps any."""
    there = [copy.copy(one) for one in methods if one is not None]
    if not there:
        return []
    there[0].body = [*there[0].body, *(node for one in there[1:] for node in one.body if not _is_text(node))]
    return [textwrap.indent(ast.unparse(there[0]), "    ")]


def _class(one: _File, two: _File, number: int) -> str:
    """The class with the envelopes in their order, and eager after the last."""
    eager = next(node for node in ast.walk(one.forward) if isinstance(node, ast.Return) and _is_eager(node))
    forward = copy.copy(one.forward)
    forward.body = [*one.steps(), *two.steps(), eager]
    text = ast.unparse(ast.fix_missing_locations(forward))
    parts = [
        f"class {one.cls.name}({ast.unparse(one.cls.bases[0])}):",
        f'    """{class_of(one.cls.name)}: the kernels where they were validated, eager elsewhere."""',
        "\n".join(f"    {line}" if line else "" for line in text.split("\n")),
        *(one.piece(node) for node in one.envelopes.values()),
        *(two.piece(node) for node in two.envelopes.values()),
        *_forget([one.forget, two.forget]),
    ]
    return "\n\n".join([f"{parts[0]}\n{parts[1]}", *parts[2:]])
