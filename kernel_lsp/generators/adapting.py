"""A kernel file of one class made into the kernel file of another one that computes the same.

What names the class changes: its import, ``<Class>Triton``, forward's parameters, the paths of parameters and buffers, and
the conditions of the envelope about what else the class holds, which are those of the new class. Only files of the form
that our own generators write are taken on: where it is not sure that the result says what is meant, there is none.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
import textwrap
from dataclasses import dataclass, field

from kernel_lsp import packed_weights
from kernel_lsp.class_schema import Interface, Specimen, TensorSpec
from kernel_lsp.envelope_constants import conjuncts, envelope_body
from kernel_lsp.generators.bound_names import bindings, binds, identifiers, names
from kernel_lsp.generators.drop_in import parameters_of
from kernel_lsp.generators.edits import Edits
from kernel_lsp.generators.spelling import spelled_out
from kernel_lsp.loading import LOADER, from_one, import_lines
from kernel_lsp.naming import attribute, kernel_class, snake_case
from kernel_lsp.why_eager import without

_LIBRARIES = {"torch", "triton"}


class Unsuitable(Exception):
    """Why a kernel cannot be made into one for another class."""


@dataclass
class Origin:
    """The class that a kernel was written for. ``forward``, ``inputs``, ``state``: as in ``Specimen``."""

    class_name: str
    forward: list[str]
    inputs: list[TensorSpec]
    state: list[str]
    pinned: bool = False


@dataclass
class _File:
    """A kernel file that is being rewritten.

    Attributes:
        cls: the drop-in class; ``methods``: its functions by name.
        parameters: forward's, from the old names to the new ones.
        paths: Python for each tensor of the state, from old to new.
        settings: conditions that the old class and the new one have in common.
        keyed: where the module stands for itself alone, whatever it holds: its CUDA graphs are found by it.
    """

    edits: Edits
    cls: ast.ClassDef
    specimen: Specimen
    interface: Interface
    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    settings: set[str] = field(default_factory=set)
    keyed: set[ast.expr] = field(default_factory=set)


def adapted(source: str, origin: Origin, specimen: Specimen, interface: Interface) -> str:
    """The body of a kernel file for ``specimen``'s class. Its graph has to be the one that the kernel was written for.

    Raises:
        Unsuitable: it cannot be made with certainty.
    """
    try:
        source = from_one(without(source))  # what the pipelines add they add again, for the new class
        file = _read(source, origin, specimen, interface)
        conditions = _conditions(file)
        _rewrite_methods(file, conditions)
        _rename_class(file, origin.class_name)
        text = file.edits.text()
        compile(text, "kernel", "exec", dont_inherit=True)
        if _same(text, spelled_out(source)):  # nothing had to be changed
            return source
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unsuitable(f"Python cannot parse it: {error}") from None
    return text


def _same(a: str, b: str) -> bool:
    """Whether two files differ in line breaks and quotes at most."""
    return ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))


def _read(source: str, origin: Origin, specimen: Specimen, interface: Interface) -> _File:
    edits = Edits(spelled_out(source))
    wanted = kernel_class(origin.class_name)
    classes = [node for node in edits.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    if [node.name for node in classes] != [wanted]:
        raise Unsuitable(f"its classes are not {wanted} alone")
    file = _File(edits, classes[0], specimen, interface)
    for node in file.cls.body:
        if isinstance(node, ast.FunctionDef) and node.name not in file.methods and not node.decorator_list:
            file.methods[node.name] = node
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise Unsuitable(f"its class holds more than methods (line {node.lineno})")
    if not {"forward", "_in_envelope"} <= {*file.methods} or "__init__" in file.methods:
        raise Unsuitable("its class is not a forward inside an envelope")
    for name, method in file.methods.items():
        if not method.args.args or method.args.args[0].arg != "self":
            raise Unsuitable(f"its {name} has no self")
        if name != "forward" and name in interface.attributes:
            raise Unsuitable(f"the class has an attribute {name} of its own")
    methods = [file.methods[name] for name in ("forward", packed_weights.METHOD) if name in file.methods]
    calls = [node for one in methods for node in ast.walk(one) if isinstance(node, ast.Call) and node.args]
    by_module = ("_begin", "_replayed", "_packed", "_forget")
    file.keyed = {call.args[0] for call in calls if ast.unparse(call.func) in by_module and _is_self(call.args[0])}
    file.parameters = _parameters(file, origin)
    file.paths = _paths(origin.state, specimen.state)
    return file


def _parameters(file: _File, origin: Origin) -> dict[str, str]:
    """From forward's old parameters to the new ones. They have to be as many, of the same kinds, for the same tensors."""
    forward, specimen = file.methods["forward"], file.specimen
    declared, passed = parameters_of(forward), file.interface.names
    old = [name.strip("*").partition("=")[0] for name in declared]
    if old != origin.forward or len(old) != len(specimen.forward) or len(passed) != len(declared):
        raise Unsuitable("forward takes other arguments")
    if [_kind(name) for name in declared] != [_kind(name) for name in passed]:
        raise Unsuitable("forward takes its arguments in another way")
    renamed = dict(zip(old, specimen.forward, strict=True))
    if len(origin.inputs) != len(specimen.inputs):
        raise Unsuitable("forward is given other tensors")
    for before, now in zip(origin.inputs, specimen.inputs, strict=True):
        root, rest = _root(before.name)
        if (renamed.get(root), rest) != _root(now.name):
            raise Unsuitable("forward is given its tensors in other arguments")
        if origin.pinned and before.shape != now.shape:
            raise Unsuitable("it is for other sizes only")
    used = {node.id for name in ("forward", "_in_envelope") for node in names(file.methods[name])}
    if taken := {*renamed.values()} & (used - {*renamed}):
        raise Unsuitable(f"the name {min(taken)} is taken")
    for name in ("forward", "_in_envelope"):
        for inner in ast.walk(file.methods[name]):
            arguments = inner.args if isinstance(inner, ast.FunctionDef | ast.Lambda) else None
            if arguments is not None and inner is not file.methods[name]:
                raise Unsuitable(f"its {name} has functions inside")
    return renamed


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _kind(name: str) -> str:
    return "*" * name.count("*") + "=" * name.count("=")


def _root(text: str) -> tuple[str, str]:
    """``pair[0]`` as ``("pair", "[0]")``."""
    found = re.match(r"\w+", text)
    return (found[0], text[found.end() :]) if found else ("", text)


def _paths(before: list[str], now: list[str]) -> dict[str, str]:
    if len(before) != len(now):
        raise Unsuitable("the class holds other tensors")
    return {_normal(attribute(a)): attribute(b) for a, b in zip(before, now, strict=True)}


def _normal(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))


def _conditions(file: _File) -> list[str]:
    """The conditions of the envelope: those about tensors as they were, those about the class as the new one has them."""
    settings = {normal: part for text in file.interface.settings for normal, part in _parts(text).items()}
    old = conjuncts(file.methods["_in_envelope"])
    if old is None:
        raise Unsuitable("its envelope is not one condition")
    result: list[str] = []
    gap: int | None = None  # where conditions of the old class stood first
    first: int | None = None  # where the state is looked at first
    written: set[str] = set()
    for node in old:
        state, others = _uses(node, file)
        if others:
            text = ast.unparse(node)
            if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
                raise Unsuitable("a condition on the class names something")
            if text in settings:
                result.append(settings[text])
                written.add(text)
            gap = len(result) if gap is None else gap
            continue
        if state and first is None:
            first = len(result)
        _change_uses(node, file, state)
        result.append(_enclosed(node, file.edits.text(file.edits.place(node))))
    file.settings = written
    have = {_normal(text) for text in result}  # also what is not about the class, such as hooks on all modules
    missing = [part for normal, part in settings.items() if normal not in written | have]
    at = next((place for place in (gap, first) if place is not None), len(result))
    if not all(part in have for text in file.interface.arguments for part in _parts(text)):
        raise Unsuitable("forward is given something else besides tensors")
    return [*result[:at], *missing, *result[at:]]


def _enclosed(node: ast.expr, text: str) -> str:
    """A condition as it can stand between others: its place is without the parentheses around it."""
    try:
        alone = not isinstance(node, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) and bool(_normal(text))
    except SyntaxError:  # it goes over several lines
        alone = False
    return text if alone else f"({text})"


def _parts(text: str) -> dict[str, str]:
    """What a condition joins with ``and``: each in the form of ``_normal``, and as it stands there."""
    node = ast.parse(text, mode="eval").body
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)):
        return {ast.unparse(node): text}
    return {ast.unparse(part): _enclosed(part, ast.get_source_segment(text, part) or "") for part in node.values}


def _uses(tree: ast.AST, file: _File) -> tuple[dict[ast.expr, str], list[ast.expr]]:
    """(Where a tensor of the state stands, with its new Python; every other use of self, as far as it is a path)."""
    state: dict[ast.expr, str] = {}
    others: list[ast.expr] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Name) and _is_path(node):
            inner: ast.expr | None = node
            while inner is not None and ast.unparse(inner) not in file.paths:
                inner = _below(inner)
            if inner is None:
                others.append(node)
            else:
                state[inner] = file.paths[ast.unparse(inner)]
        else:
            waiting += ast.iter_child_nodes(node)
    return state, others


def _is_path(node: ast.expr) -> bool:
    """Whether it is self, or leads from self by attributes and constant places alone."""
    at: ast.expr | None = node
    while at is not None:
        if isinstance(at, ast.Name):
            return at.id == "self"
        at = _below(at)
    return False


def _below(node: ast.expr) -> ast.expr | None:
    """What an attribute, a place or ``getattr(…, "name")`` is taken of."""
    if isinstance(node, ast.Attribute):
        return node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.value
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
    if called and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):  # type: ignore[attr-defined]
        return node.args[0]  # type: ignore[attr-defined, no-any-return]
    return None


def _change_uses(tree: ast.AST, file: _File, state: dict[ast.expr, str], parameters: bool = True) -> None:
    for node, text in state.items():
        file.edits.replace(file.edits.place(node), text)
    for name in names(tree) if parameters else []:
        if name.id in file.parameters:
            file.edits.replace(file.edits.place(name), file.parameters[name.id])


def _rewrite_methods(file: _File, conditions: list[str]) -> None:
    edits, passed = file.edits, ", ".join(file.interface.names)
    declared = ", ".join(["self", *file.interface.parameters])
    for name, method in file.methods.items():
        if name == "_in_envelope":
            continue
        state, others = _uses(method, file)
        for use in others:
            if not _is_known(use, file):
                raise Unsuitable(f"it uses {ast.unparse(use)} of the class")
        for node in state:
            if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                raise Unsuitable(f"it sets {ast.unparse(node)}")
        _change_uses(method, file, state, parameters=name == "forward")
        for call in ast.walk(method):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("super().forward", "self._in_envelope"):
                edits.replace(edits.place(call), f"{ast.unparse(call.func)}({passed})")
    forward = file.methods["forward"]
    begin, first = edits.start(forward), edits.start(forward.body[0])
    edits.replace((begin, first), f"def forward({declared}):\n{' ' * forward.body[0].col_offset}")
    envelope = file.methods["_in_envelope"]
    said = ast.get_docstring(envelope, clean=False) or "Whether the kernel was validated for this."
    text = f'def _in_envelope({declared}):\n    """{said}"""\n{textwrap.indent(envelope_body(conditions), "    ")}'
    edits.replace(edits.lines(envelope), textwrap.indent(text, " " * envelope.col_offset).lstrip())


def _is_known(use: ast.expr, file: _File) -> bool:
    """Whether a use of self outside of the envelope means the same in the new class: a method of the file, or a setting."""
    text = ast.unparse(use)
    if use in file.keyed:
        return True
    if not isinstance(getattr(use, "ctx", ast.Load()), ast.Load):
        return False
    if text.removeprefix("self.") in file.methods:
        return True
    return any(setting.startswith((f"{text} == ", f"{text} is ")) for setting in file.settings)


def _rename_class(file: _File, old: str) -> None:
    """The class, what it derives from, its import, and the functions that are named after it."""
    edits, specimen, cls = file.edits, file.specimen, file.cls
    if len(cls.bases) != 1 or cls.keywords or cls.decorator_list:
        raise Unsuitable("its class derives from more than the user's")
    base = cls.bases[0]
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        raise Unsuitable("its class derives from an expression")
    imports = _imports(edits.tree, base.id)
    words = identifiers(edits.tree)
    if bindings(edits.tree).count(base.id) != 1:
        raise Unsuitable(f"it binds {base.id} twice")
    outer, dot, rest = specimen.class_name.partition(".")
    plain = specimen.class_name.rpartition(".")[2]
    new = kernel_class(plain)
    free = words - {base.id, cls.name}
    alias = next((name for name in (outer, f"{outer}_module", f"Eager{outer}") if name not in free and name != new), "")
    if not alias or new in free or alias in file.parameters.values():
        raise Unsuitable(f"the name {outer} is taken")
    edits.rename(cls, new)
    for name in names(edits.tree):
        if name.id in (base.id, cls.name):
            edits.replace(edits.place(name), alias if name.id == base.id else new)
    edits.replace(edits.place(cls.bases[0]), alias + dot + rest)
    first, *further = imports
    edits.replace(edits.place(first), "\n".join(import_lines(specimen.module, specimen.file, outer, alias)))
    for node in further:
        edits.replace(edits.place(node), "")
    _rename_functions(file, snake_case(old), snake_case(specimen.class_name), words | {alias, new})
    for body, was, now in ((edits.tree.body, old, specimen.class_name), (cls.body, old.rpartition(".")[2], plain)):
        said = body[0]
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str):
            place = edits.place(said)
            text = edits.text(place)
            if re.match(rf"\W*{re.escape(was)}\b", text):
                edits.replace(place, text.replace(was, now, 1))


def _imports(tree: ast.Module, base: str) -> list[ast.stmt]:
    """The statements that get the class under the name ``base``; every other import has to be of a library."""
    found: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and base in binds(node):
            if len(node.names) != 1 or node.level:
                raise Unsuitable("it imports the class with others")
            found.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            roots = {module.partition(".")[0] for module in modules}
            relative = isinstance(node, ast.ImportFrom) and node.level > 0
            if relative or not roots <= _LIBRARIES | sys.stdlib_module_names:
                raise Unsuitable(f"it imports {min(modules)}")
        elif (isinstance(node, ast.FunctionDef) and node.name == LOADER) or (
            isinstance(node, ast.Assign) and base in binds(node) and LOADER in ast.unparse(node.value)
        ):
            found.append(node)
    if not any(base in binds(node) for node in found):
        raise Unsuitable(f"it does not import {base}")
    return found


def _rename_functions(file: _File, old: str, new: str, taken: set[str]) -> None:
    """Functions that are named after the old class are named after the new one, where that hides nothing."""
    hidden = taken | {*dir(builtins), *keyword.kwlist, *file.parameters.values(), *file.interface.attributes}
    for node in file.edits.tree.body:
        if not isinstance(node, ast.FunctionDef) or not (node.name == old or node.name.startswith(f"{old}_")):
            continue
        name = new + node.name.removeprefix(old)
        if name in hidden or not name.isidentifier() or bindings(file.edits.tree).count(node.name) != 1:
            continue
        hidden.add(name)
        file.edits.rename(node, name)
        for use in names(file.edits.tree):
            if use.id == node.name:
                file.edits.replace(file.edits.place(use), name)
