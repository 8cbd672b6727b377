"""Names in an answer changed for the drop-in class: its own, those in the way of ours, and attributes' places."""

from __future__ import annotations

import ast

from kernel_lsp.envelope_constants import CONSTANTS
from kernel_lsp.generators.answers import ORIGINAL
from kernel_lsp.generators.attributes import Answer, Settled
from kernel_lsp.generators.blocks import names
from kernel_lsp.generators.constructors import first_argument, read_from
from kernel_lsp.generators.rewriting import Function, dotted


def globals_of(answer: Answer) -> set[str]:
    """The names that the answer binds at its top, without its class."""
    return names("\n".join(answer.source.lines))[0] - {answer.node.name}


def rename(answer: Answer, settled: Settled, drop_in: str, base: str, bound: set[str]) -> None:
    """Give the class its new name, what stands in the way of ours another, and attributes their places."""
    source = answer.source
    new = {name: f"{name}_" for name in bound & {drop_in, *CONSTANTS}}
    if ORIGINAL not in bound:
        new[ORIGINAL] = base  # the prompt's name for the user's class
    new[answer.node.name] = drop_in
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id in new:
            source.replace(source.start(node), source.end(node), new[node.id])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in new and node is not answer.node:
            source.rename(node, "def" if isinstance(node, ast.FunctionDef) else "class", node.name, new[node.name])
    for name in settled.methods:
        if name in settled.renames:
            source.rename(answer.methods[name], "def", name, settled.renames[name])
    for name in settled.constants:
        for node in ast.walk(answer.constants[name]):
            if isinstance(node, ast.Name) and node.id in settled.constants and node.id in settled.renames:
                source.replace(source.start(node), source.end(node), settled.renames[node.id])
    for function in {answer.init, *(answer.methods[name] for name in settled.methods)} - {None}:
        assert function is not None
        _place_attributes(answer, settled, function, new)
    for statement in settled.statements:
        for inside in ast.walk(statement):
            _keep_out_of_the_state(answer, settled, inside)


def _place_attributes(answer: Answer, settled: Settled, function: Function, new: dict[str, str]) -> None:
    source, own = answer.source, first_argument(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and dotted(node.func.value) == own:
            helper = settled.calls.get(node.func.attr)
            if helper and function is not answer.init:
                line, end = source.end(node.func)
                opening = source.lines[line - 1].index("(", end)
                place = settled.renames.get(node.func.attr, node.func.attr)
                comma = ", " if node.args or node.keywords else ""
                text = f"{new.get(helper, helper)}.forward({own}.{place}{comma}"
                source.replace(source.start(node.func), (line, opening + 1), text)
    for attribute in read_from(function, own, answer.node.name):
        if attribute.attr in settled.renames:
            text = f".{settled.renames[attribute.attr]}"
            source.replace(source.end(attribute.value), source.end(attribute), text)


def _keep_out_of_the_state(answer: Answer, settled: Settled, node: ast.AST) -> None:
    """A tensor of the answer's becomes a buffer that no state_dict has; a module of its is not registered."""
    source, own = answer.source, first_argument(answer.init)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        name = node.targets[0].attr
        kind = settled.kept.get(name, "plain") if dotted(node.targets[0].value) == own else "plain"
        new = settled.renames.get(name, name)
        if kind == "tensor":
            source.replace(source.start(node), source.start(node.value), f'{own}.register_buffer("{new}", ')
            source.replace(source.end(node.value), source.end(node.value), ", persistent=False)")
        elif kind == "module":
            source.replace(source.start(node), source.start(node.value), f'object.__setattr__({own}, "{new}", ')
            source.replace(source.end(node.value), source.end(node.value), ")")
    elif isinstance(node, ast.Call) and dotted(node.func) == f"{own}.register_buffer":
        line, end = source.end(node)
        persistent = [k for k in node.keywords if k.arg == "persistent"]
        if persistent:
            source.replace(source.start(persistent[0].value), source.end(persistent[0].value), "False")
        elif len(node.args) == 2:
            source.replace((line, end - 1), (line, end), ", persistent=False)")
