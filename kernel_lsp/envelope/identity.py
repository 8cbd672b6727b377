"""Whether two modules compute the same: a hash of the exported graph without the names that people gave.

Not in it: the names of classes, parameters, buffers and values, the order of statements that do not depend on one
another, and the device. In it: operators with their constants, also those that are tensors, dtypes, and sizes as far as they are fixed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

_KINDS = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer"}


def identified(exported: ExportedProgram) -> tuple[str, list[str]]:
    """The identity, ``sha256:…``, equal for graphs that are equal but for names; and the state in use.

    That is the qualified names of parameters, buffers and constants in the order in which the canonical graph meets
    them: of two modules with one identity the tensors at the same place play the same part.
    """
    canonical = _Canonical(exported)
    text = "\n".join(canonical.lines)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", canonical.state


class _Canonical:
    """The graph as text, values numbered in the order in which they are needed for the outputs."""

    def __init__(self, exported: ExportedProgram) -> None:
        self.lines: list[str] = []
        self.state: list[str] = []
        self._constants = exported.constants
        self._specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs}
        self._inputs = {node: i for i, node in enumerate(self._user_inputs(exported))}
        self._numbers: dict[Node, str] = {}
        self._symbols: dict[str, str] = {}
        output = next(node for node in exported.graph.nodes if node.op == "output")
        # The inputs first: their shapes name the symbols, and their places are part of what is computed.
        for node in self._inputs:
            self._write(node)
        for node in self._needed(output):
            self._write(node)
        self.lines.append(f"return {self._argument(output.args)}")
        # What forward assigns to attributes of its own: those keep their names, which callers may look at.
        self.lines += map(str, exported.graph_module.meta.get("attributes", ()))

    def _user_inputs(self, exported: ExportedProgram) -> list[Node]:
        nodes = [node for node in exported.graph.nodes if node.op == "placeholder"]
        return [node for node in nodes if self._specs[node.name].kind == InputKind.USER_INPUT]

    def _needed(self, output: Node) -> list[Node]:
        """What the outputs need, each after what it needs itself. No recursion: graphs are deep."""
        found: dict[Node, None] = {}
        waiting: list[tuple[Node, bool]] = [(output, False)]
        while waiting:
            node, met = waiting.pop()
            if met:
                found[node] = None
            elif node not in found:
                waiting.append((node, True))
                waiting += [(other, False) for other in reversed(node.all_input_nodes) if other not in found]
        found.pop(output)
        return list(found)

    def _write(self, node: Node) -> None:
        if node in self._numbers:
            return
        if node.op == "placeholder":
            line = self._placeholder(node)
        elif node.op == "call_function":
            arguments = [self._argument(value) for value in node.args]
            named = [f"{key}={self._argument(value)}" for key, value in sorted(node.kwargs.items()) if key != "device"]
            line = f"{_name(node.target)}({', '.join([*arguments, *named])})"
        else:
            line = f"{node.op} {node.target}"
        self._numbers[node] = f"%{len(self._numbers)}"
        self.lines.append(f"{self._numbers[node]} = {line}: {self._value(node.meta.get('val'))}")

    def _placeholder(self, node: Node) -> str:
        if node in self._inputs:
            return f"input {self._inputs[node]}"
        spec = self._specs[node.name]
        self.state.append(str(spec.target))
        if spec.kind is InputKind.CONSTANT_TENSOR:
            return f"constant {_values(self._constants.get(str(spec.target)))}"
        return _KINDS.get(spec.kind, "other")

    def _argument(self, value: Any) -> str:
        if isinstance(value, Node):
            return self._numbers.get(value, "%?")
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._argument, value))}]"
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._symbolic(value)
        return repr(value)

    def _value(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            sizes = ", ".join(map(self._symbolic, value.shape))
            return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._value, value))}]"
        return self._symbolic(value)

    def _symbolic(self, value: Any) -> str:
        """An expression of sizes with its symbols numbered as they are met."""
        expression = getattr(getattr(value, "node", None), "expr", None)
        if expression is None:
            return str(value)
        names: dict[Any, Any] = {}
        for symbol in sorted(expression.free_symbols, key=str):
            names[symbol] = self._symbols.setdefault(str(symbol), f"n{len(self._symbols)}")
        return str(expression.subs(names))


def _name(target: Callable[..., Any] | str) -> str:
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _values(constant: object) -> str:
    """A hash of a tensor's elements; "" where it has none of its own, as under ``FakeTensorMode``."""
    if type(constant) is not torch.Tensor or constant.layout is not torch.strided or constant.is_meta:
        return ""
    elements = constant.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(elements.numpy().tobytes()).hexdigest()[:16]
