"""The graph of a module, or why there is none, in words for the module's author."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import textwrap
import traceback
from typing import Any

import torch
from torch.export import ExportedProgram

from kernel_lsp import errors
from kernel_lsp.specimen import building, data_dependence, examples, faults

_ON_VALUES = "what it does next depends on values in the tensors, not on their sizes alone"
_A_SIZE = "a size depends on values in the tensors"
_IN_NUMPY = "it leaves torch for numpy"
_ONE_MEMORY = "it changes a buffer that lies in the same memory as another buffer or parameter"
_OWN_GRADIENTS = (
    "a tensor that it makes is unknown to the graph, as the gradients of torch.autograd.grad and torch.func.grad are"
)
_NO_INPUT = "an argument or a result is neither tensor, number, text nor None"
_OBJECT = "it returns an object that is no tensor, tuple, named tuple, list, dict or dataclass"
_NOT_REBUILT = "it returns a dataclass that cannot be made from its fields"
#: what torch says → what it means, with what a group of the pattern found
_WORDS = (
    (
        r"GuardOnDataDependentSymNode|DataDependentOutputException|data-dependent",
        _ON_VALUES,
    ),
    (r"unbacked symint|size.* must be tuple of ints, ?but got FakeTensor", _A_SIZE),
    (r"cannot be solved using solve_univariate_inequality", "its sizes depend on the inputs' in too involved a way"),
    (r"Unfamiliar meta val: (.+)", _NO_INPUT + " ({})"),
    (r"Expected mod_call to be|unsupported input type|Unsupported input type", "an input or output of it is no tensor"),
    (r"(?:[\w<>]+\.)*(\w+)'?>? in output, which is not a known type", _OBJECT + " ({})"),
    (
        r"TypeError: unhashable type: '(?!(?:list|dict|set)')(\w+)'",
        _OBJECT + " ({})",
    ),  # torch 2.11, of a subclass of dict
    (r"NotRebuilt: (\w+) cannot be made from its fields: (.*)", _NOT_REBUILT + " ({}: {})"),
    (r"numpy\(\) is not supported|Cannot convert .* to numpy", _IN_NUMPY),
    (r"expected compiled_fn to be GraphModule", _ONE_MEMORY),
    (
        r"fake tensor in the exported program constant's list|'Tensor' object has no attribute 'constant'",
        _OWN_GRADIENTS,
    ),
    (r"_dispatch_keys|FakeTensor.*data_ptr|data pointer of", "it reads the memory of a tensor directly"),
)


def export(
    module: torch.nn.Module, example: examples.Example, path: str, class_name: str, *, ran: bool, training: bool
) -> ExportedProgram | errors.UserError:
    """The graph, or the error that says why not: a module that cannot be exported can still be validated.

    That is NotExportable; where a graph would lose a change that forward makes, AttributeAssigned or ArgumentChanged; NotWritable where a hook
    of the module's own replaces the arguments of forward.

    ``ran``: whether its forward has run on the example.

    Raises:
        ForwardFailed, DeviceMissing, OutputsNotTensors: its forward had not run, and does not.
    """
    from kernel_lsp.synthesis.capture import Assigned, capture
    from kernel_lsp.synthesis.containers import ArgumentChanged
    from kernel_lsp.synthesis.own_hooks import ArgumentsReplaced

    try:
        return capture(module, example.args, example.kwargs, training=training)
    except Assigned as error:
        at, line = _assignment(module, error.attribute) or _forward_at(module) or (path, 1)
        return errors.AttributeAssigned(
            path=at, line=line, class_name=class_name, attribute=error.attribute, why=error.why
        )
    except ArgumentChanged as error:
        at, line = _change(module, error.argument) or _forward_at(module) or (path, 1)
        return errors.ArgumentChanged(
            path=at, line=line, class_name=class_name, argument=error.argument, kind=error.kind
        )
    except ArgumentsReplaced as error:
        at, line = _forward_at(module) or (path, 1)
        detail = f"a hook of its own ({error.hook}) replaces the arguments of forward, which forward itself has to do"
        return errors.NotWritable(path=at, line=line, class_name=class_name, detail=detail)
    except Exception as error:
        traceback.print_exc()
        if not ran:  # perhaps it does not even run
            building.call(module, example.args, example.kwargs, path, class_name)
        found = _told_line(path, error) or faults.line_in(path, error)
        at, line = (path, found) if found is not None else _forward_at(module) or (path, 1)
        detail = _plainly(error, at, line)
        if scripted := _scripted(module):
            advice = "Leave torch.jit out, or generate kernels for the module that it was given."
            detail = f"{scripted} was made by torch.jit, whose code torch.export does not follow"
            return errors.NotExportable(path=at, line=line, class_name=class_name, detail=detail, advice=advice)
        if detail.startswith(_ON_VALUES) and (told := data_dependence.described(at, line)) is not None:
            detail, advice = f"{_A_SIZE if told.of_size else _ON_VALUES} ({told.what})", told.advice
            return errors.NotExportable(path=at, line=line, class_name=class_name, detail=detail, advice=advice)
        return errors.NotExportable(path=at, line=line, class_name=class_name, detail=detail, advice=_advice(detail))


def _scripted(module: torch.nn.Module) -> str:
    """The first module in it that torch.jit.script or torch.jit.trace made: torch.export takes none. "" where there is none."""
    named = (name for name, part in module.named_modules() if isinstance(part, torch.jit.ScriptModule))
    return next((f"self.{name}" if name else "it" for name in named), "")


def breaks_the_graph(error: errors.NotExportable) -> bool:
    """Whether torch.compile cannot take the module whole either: Python decides there on what the tensors hold."""
    return str(error.values.get("detail", "")).startswith((_ON_VALUES, _A_SIZE))


#: methods that change a list or a dictionary
_CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "setdefault", "reverse", "sort")
)

#: how the detail of an error begins → what to do about it
_ADVICE = {
    _ON_VALUES: "Data-dependent control flow must become torch.where, or stay outside the module.",
    _A_SIZE: "Take sizes from shapes or arguments, and weight by a mask what is selected by values.",
    _IN_NUMPY: "Use torch's own functions there.",
    _NO_INPUT: "Hand it to the constructor, or hand forward a number or a text in its place.",
    _OBJECT: "Return one of these from a module of its own, and make the object outside it; or leave it to torch.",
    _NOT_REBUILT: "Set its fields by its constructor alone, or return a tuple and make the object outside the module; or leave it to torch.",
    _ONE_MEMORY: "Register it under one name, or give each name a copy (clone).",
}


def _advice(detail: str) -> str:
    known = (advice for beginning, advice in _ADVICE.items() if detail.startswith(beginning))
    return next(known, "Generate kernels for the modules inside it, or leave it to torch.")


def _told_line(path: str, error: Exception) -> int | None:
    """The line of the user's file that torch.export itself names."""
    for file, line in re.findall(r'raised this error:\s+File "([^"]+)", line (\d+)', str(error)):
        if os.path.realpath(file) == os.path.realpath(path):
            return int(line)
    return None


def _plainly(error: Exception, file: str, line: int) -> str:
    """One sentence without the words of torch.export where these are known, with the line it is about; else torch's own."""
    whole = f"{type(error).__name__}: {error}"
    for pattern, words in _WORDS:
        if found := re.search(pattern, whole):
            code = linecache.getline(file, line).strip()
            about = "" if not code or code.startswith(("def ", "class ", "@")) else f" (`{code}`)"
            return f"{words.format(*found.groups())}{about}"
    # What torch asks of its own users is not for the reader.
    return re.sub(
        r"\s*(Please file an issue|To fix the error|For more information|See https?:).*", "", faults.sentence(error)
    ).rstrip(".")


def _forward_at(module: torch.nn.Module) -> tuple[str, int] | None:
    """(file, line) of forward: of a class that the user's file only imports, in the package."""
    try:
        function = inspect.unwrap(type(module).forward)
        return inspect.getsourcefile(function) or "", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return None


def _change(module: torch.nn.Module, argument: str) -> tuple[str, int] | None:
    """(file, line) where forward changes what it is given as ``argument``: an item of it, or by a method, as far as its text shows."""
    try:
        function = inspect.unwrap(type(module).forward)
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.expr) and _changes(n, argument)]
    return (inspect.getsourcefile(function) or "", first + min(found) - 1) if found else None


def _changes(node: ast.expr, name: str) -> bool:
    """``name[…] = …``, ``del name[…]`` or ``name.append(…)``."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and _is_named(node.value, name)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _CHANGING and _is_named(called.value, name)


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _assignment(module: torch.nn.Module, attribute: str) -> tuple[str, int] | None:
    """(file, line) where a method but the constructor assigns ``attribute`` ("self.hidden", "self.cell.state")."""
    owner, _, name = attribute.removeprefix("self.").partition("[")[0].rpartition(".")
    try:
        kind = type(module.get_submodule(owner))
        lines, first = inspect.getsourcelines(kind)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        file = inspect.getsourcefile(kind) or ""
    except (OSError, TypeError, SyntaxError, AttributeError):
        return None
    methods = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name != "__init__"]
    found = [
        n.lineno
        for method in methods
        for n in ast.walk(method)
        if isinstance(n, ast.stmt | ast.Call) and _assigns(n, name)
    ]
    return (file, first + min(found) - 1) if found else None


def _assigns(node: ast.AST, name: str) -> bool:
    """``self.name = …``, ``self.name[…] = …`` or ``self.name.copy_(…)``."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(_is_attribute(part, name) for target in targets for part in ast.walk(target))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        return method.endswith("_") and not method.endswith("__") and _is_attribute(node.func.value, name)
    return False


def _is_attribute(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name
