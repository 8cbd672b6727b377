"""Reads a model's answer tolerantly: the code of the class that it was asked for, with only what that class needs."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_lsp.envelope_constants import LIBDEVICE
from kernel_lsp.generators.blocks import Block, Statement, blocks, plain_text, statements

#: the name that the answer is to give its own
WANTED = "ModelNew"
#: the name of the user's class in the prompt
ORIGINAL = "Model"

#: imports that are obviously meant where a name is used and bound nowhere
IMPORTS = {
    "torch": "import torch",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "libdevice": LIBDEVICE,
    "Tensor": "from torch import Tensor",
    "functools": "import functools",
    "typing": "import typing",
    **{
        name: f"from typing import {name}"
        for name in ("Any", "Callable", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")
    },
}

_ELSEWHERE = 10**9  # lines from here on are not in the answer
_CUT = "the answer was cut off here"


class Unusable(Exception):
    """An answer that cannot be used. ``reason`` goes on after "it was rejected:"; ``line``: 1-based, in the answer."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True)
class Code:
    """What was found: ``source`` parses, its imports first.

    ``first_line``: of the first statement, in the answer; ``class_name``: what the answer calls its class; ``lines``:
    for each line of ``source`` the line in the answer, 0 for an import that was added.
    """

    source: str
    first_line: int
    class_name: str
    lines: tuple[int, ...] = ()

    def line(self, of_source: int | None) -> int | None:
        """The line in the answer for one of ``source``."""
        if of_source is None or not 1 <= of_source <= len(self.lines):
            return None
        return self.lines[of_source - 1] or None


Blocks = list[list[Statement]]


def extract(text: str, finish: str) -> Code:
    """The class in an answer, with what it uses of the rest of the answer.

    Of several versions the last whole one counts. ``finish`` is why the model stopped: after "length" the last
    statement is not whole, unless its fence was closed.

    Raises:
        Unusable: there is no Python, no class, or the class or something it uses does not parse.
    """
    if not text.strip():
        raise Unusable("it is empty", None)
    found = blocks(plain_text(text))
    parsed: Blocks = []
    problem: Unusable | None = None
    # Code in fences first; an answer may also be code alone, or have a fence only at its end.
    for fenced in (True, False):
        if not any(block.fenced is fenced for block in found):
            continue
        parsed = []
        for block in found:
            if block.fenced is fenced or not fenced:
                last = finish == "length" and block is found[-1] and not block.closed
                parsed.append(statements(block, last))
        try:
            return _choose(parsed)
        except Unusable as unusable:
            problem = problem if problem is not None and problem.line else unusable
    if problem is None or (problem.line is None and not any(s.binds for block in parsed for s in block)):
        thinking = finish == "length" and "<think" in text.lower()
        why = "it was cut off while the model was thinking" if thinking else "it contains no Python code"
        raise Unusable(why, None)
    raise problem


def completed(code: Code, source: str, without: set[str]) -> Code:
    """``code`` with what it uses of ``source``, the module in the prompt, but binds nowhere itself.

    ``without``: names of ``source`` that are never taken over.

    Raises:
        Unusable: a statement that the class needs does not parse.
    """
    theirs = [s for s in statements(Block(source.split("\n"), _ELSEWHERE, True), False) if not s.binds & without]
    ours = statements(Block(code.source.split("\n"), 1, True), False)
    missing = set().union(*(s.uses for s in ours)) - set().union(*(s.binds for s in ours), dir(builtins), IMPORTS)
    if not missing & set().union(*(s.binds for s in theirs)):
        return code
    wanted = next(s for s in ours if isinstance(s.node, ast.ClassDef) and s.node.name == code.class_name)
    more = _written([theirs, ours], _closure([theirs, ours], 1, wanted), code.class_name)
    lines = tuple(0 if line >= _ELSEWHERE or not line else code.lines[line - 1] for line in more.lines)
    return Code(more.source, code.first_line, code.class_name, lines)


def _choose(parsed: Blocks) -> Code:
    """The best class with all it uses.

    Raises:
        Unusable: there is none; with the first thing that stood in the way.
    """
    problem: Unusable | None = None
    for at, statement in _classes(parsed):
        assert isinstance(statement.node, ast.ClassDef)
        try:
            needed = _closure(parsed, at, statement)
        except Unusable as unusable:
            problem = problem or unusable
            continue
        if statement.node.name == ORIGINAL and not _launches(parsed, needed):
            kernels = any(_is_kernel(s) for block in parsed for s in block)
            said = "defines kernels, but" if kernels else "repeats the module, but"
            problem = problem or Unusable(f"it {said} no class {WANTED}", statement.line)
            continue
        return _written(parsed, needed, statement.node.name)
    if (wrong := _first_broken(parsed)) and (problem is None or problem.reason.endswith(f"no class {WANTED}")):
        problem = _does_not_parse(wrong)
    if problem is not None:
        raise problem
    functions = [s for block in parsed for s in block if isinstance(s.node, ast.FunctionDef)]
    if functions:
        raise Unusable(f"it defines functions, but no class {WANTED}", functions[0].line)
    raise Unusable(f"it defines no class {WANTED}", None)


def _first_broken(parsed: Blocks) -> Statement | None:
    """What does not parse: the class, or else the last thing that has a name."""
    broken = [s for block in parsed for s in block if s.node is None and s.binds]
    return next((s for s in broken if WANTED in s.binds), broken[-1] if broken else None)


def _does_not_parse(statement: Statement) -> Unusable:
    name = next(iter(statement.binds), "its code")
    if statement.problem == _CUT:
        return Unusable(f"it was cut off before {name} was complete", statement.problem_line)
    return Unusable(f"{name} does not parse: {statement.problem}", statement.problem_line)


def _classes(parsed: Blocks) -> Iterator[tuple[int, Statement]]:
    """(block, class) that may be meant, the likeliest first: by name, then what nothing else uses, the last first."""
    every = [(at, s) for at, block in enumerate(parsed) for s in block if isinstance(s.node, ast.ClassDef)]
    modules = {"Module", ORIGINAL}
    for _, s in every:  # bases come before what derives from them
        assert isinstance(s.node, ast.ClassDef)
        if any(_last_name(base) in modules for base in s.node.bases) and s.node.name != ORIGINAL:
            modules.add(s.node.name)
    every = [(at, s) for at, s in reversed(every) if isinstance(s.node, ast.ClassDef) and s.node.name in modules]
    used = {name for _, s in every for name in s.uses - s.binds}

    def unlikely(entry: tuple[int, Statement]) -> int:
        node = entry[1].node
        assert isinstance(node, ast.ClassDef)
        if not any(isinstance(s, ast.FunctionDef) and s.name == "forward" for s in node.body):
            return 4 if node.name == WANTED else 5
        return 0 if node.name == WANTED else 3 if node.name == ORIGINAL else 2 if node.name in used else 1

    yield from sorted(every, key=unlikely)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


Place = tuple[int, int]  # block, statement


def _closure(parsed: Blocks, at: int, wanted: Statement) -> dict[Place, set[str]]:
    """Every statement that ``wanted``, in block ``at``, needs, with the names it is needed for.

    Raises:
        Unusable: one of them does not parse.
    """
    first = (at, next(i for i, s in enumerate(parsed[at]) if s is wanted))
    needed: dict[Place, set[str]] = {first: wanted.binds}
    waiting = [(at, name) for name in sorted(wanted.uses)]
    seen = {(at, name) for name in wanted.binds} | set(waiting)
    while waiting:
        block, name = waiting.pop()
        for place in _providers(parsed, block, name):
            statement = parsed[place[0]][place[1]]
            if statement.node is None:
                raise _does_not_parse(statement)
            needed.setdefault(place, set()).add(name)
            if isinstance(statement.node, ast.Import | ast.ImportFrom):
                continue
            more = [(place[0], used) for used in sorted(statement.uses) if (place[0], used) not in seen]
            seen.update(more)
            waiting += more
    return needed


def _providers(parsed: Blocks, at: int, name: str) -> list[Place]:
    """What binds a name for block ``at``: in that block, else in the nearest before, else in one after it.

    Of several definitions of a function or class the last, and what is assigned to its name after it.
    """
    broken: list[Place] = []
    for block in [at, *range(at - 1, -1, -1), *range(at + 1, len(parsed))]:
        found = [i for i, s in enumerate(parsed[block]) if name in s.binds and not _is_test(s)]
        whole = [i for i in found if parsed[block][i].node is not None]
        defined = [i for i in whole if isinstance(parsed[block][i].node, ast.FunctionDef | ast.ClassDef | _IMPORT)]
        if whole:
            last = defined[-1] if defined else whole[0]
            return [(block, i) for i in whole if i >= last]
        broken = broken or [(block, i) for i in found[-1:]]
    return broken


_IMPORT = ast.Import | ast.ImportFrom


def _is_test(statement: Statement) -> bool:
    return isinstance(statement.node, ast.If) and "__name__" in statement.uses


def _launches(parsed: Blocks, needed: dict[Place, set[str]]) -> bool:
    return any(_is_kernel(parsed[block][i]) for block, i in needed)


def _is_kernel(statement: Statement) -> bool:
    if not isinstance(statement.node, ast.FunctionDef):
        return False
    return any(
        _last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) == "jit"
        for decorator in statement.node.decorator_list
    )


def _written(parsed: Blocks, needed: dict[Place, set[str]], class_name: str) -> Code:
    """The statements as one source: imports, the added ones last of them, then the others as they stand."""
    imports: dict[str, int] = {}
    others: list[Statement] = []
    bound, used = set(dir(builtins)), set()
    for place in sorted(needed):
        statement = parsed[place[0]][place[1]]
        if isinstance(statement.node, _IMPORT):
            for text in import_parts(statement.node, needed[place]):
                imports.setdefault(text, statement.line)
            bound |= needed[place]
        else:
            others.append(statement)
            bound |= statement.binds
            used |= statement.uses
    for block in sorted({block for block, _ in needed}):
        for statement in parsed[block]:
            if isinstance(statement.node, ast.ImportFrom) and _is_wanted_anyway(statement.node, used - bound):
                imports.setdefault(statement.text, statement.line)
    for name in sorted(used - bound, key=lambda name: (name not in ("torch", "triton", "tl"), name)):
        if name in IMPORTS:
            imports.setdefault(IMPORTS[name], 0)
    ordered = sorted(imports.items(), key=lambda item: not item[0].startswith("from __future__"))
    texts = [text for text, _ in ordered]
    lines = [line for _, line in ordered]
    for statement in others:
        texts += ["", "", statement.text]
        lines += [0, 0, *(statement.line + i for i in range(statement.text.count("\n") + 1))]
    source = "\n".join(texts) + "\n"
    first = min((line for line in lines if line), default=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unusable(f"its statements do not parse together: {error}", first) from None
    return Code(source, first, class_name, tuple(lines))


def import_parts(node: ast.Import | ast.ImportFrom, wanted: set[str]) -> list[str]:
    """The part of an import that binds ``wanted``, one statement for each."""
    found = []
    for alias in node.names:
        as_name = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.ImportFrom):
            if (alias.asname or alias.name) in wanted:
                found.append(f"from {'.' * node.level}{node.module or ''} import {alias.name}{as_name}")
        elif (alias.asname or alias.name.partition(".")[0]) in wanted:
            found.append(f"import {alias.name}{as_name}")
    return found


def _is_wanted_anyway(node: ast.ImportFrom, missing: set[str]) -> bool:
    """Imports that bind no name one can see: of the language's future, or of everything in a module."""
    if node.module == "__future__":
        return True
    everything = any(alias.name == "*" for alias in node.names)
    return everything and bool(missing) and (node.module or "").partition(".")[0] in ("torch", "triton")
