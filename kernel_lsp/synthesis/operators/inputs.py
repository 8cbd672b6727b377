"""The inputs of a graph: the arguments of forward, and what the module holds, out of the placeholders of an exported program."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.multiprocessing.reductions import StorageWeakRef

from kernel_lsp.naming import attribute

from ..attributes import of as attributes_of
from ..graph.build import NotLowered, shape_of
from ..graph.lowered import Graph
from ..graph.value import Input, Value, input_of
from . import complex_numbers, constants
from .untraceable import Untraceable


def placeholders(exported: ExportedProgram) -> Graph:
    """A graph of the arguments alone, for their sizes and the ranges of these.

    Raises:
        Untraceable: an argument is a number that varies.
    """
    graph = Graph()
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs if hasattr(spec.arg, "name")}
    for node in exported.graph.nodes:
        spec = specs.get(node.name)
        if node.op == "placeholder" and spec is not None and spec.kind is InputKind.USER_INPUT:
            placeholder(node, spec, exported, graph)
    graph.ranges = ranges(exported)
    return graph


def ranges(exported: ExportedProgram) -> dict[sympy.Symbol, tuple[int, int | None]]:
    """(least, most) of each size, None where nothing bounds it."""
    return {symbol: _range(bounds) for symbol, bounds in exported.range_constraints.items()}


def _range(bounds: Any) -> tuple[int, int | None]:
    least = int(bounds.lower) if bounds.lower.is_Integer else 0  # a number out of a tensor may be anything
    return least, int(bounds.upper) if bounds.upper.is_Integer and bounds.upper < 2**31 else None


def placeholder(node: Any, spec: Any, exported: ExportedProgram, graph: Graph) -> Any:
    """A placeholder's value: an input, which goes into ``graph``, or a constant.

    Raises:
        Untraceable: it can be neither.
    """
    fake = node.meta.get("val")
    if not isinstance(fake, torch.Tensor):
        if isinstance(fake, torch.SymInt | torch.SymFloat):
            raise Untraceable("number argument", "a number that varies is an argument of forward")
        return fake
    kinds = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "constant"}
    kind = kinds.get(spec.kind, "argument") if spec is not None else "argument"
    if kind == "constant":
        constant = exported.constants[spec.target]
        held = _held(constant, exported)
        if held is not None:
            known = [
                v for v in graph.inputs if input_of(v).kind != "argument" and input_of(v).source == attribute(held)
            ]
            if known:  # forward reaches it by its own name, too
                return known[0]
            return _input(held, "parameter" if held in exported.graph_signature.parameters else "buffer", fake, graph)
        made = spec.target.rsplit(".", 1)[-1].startswith("lifted_tensor")
        if constant.numel() == 1 and not (made and constant.dim()):
            return constant.item()
        if made:
            try:
                if constant.is_complex():
                    return complex_numbers.Complex(
                        *(constants.written(part) for part in (constant.real, constant.imag))
                    )
                return constants.written(constant)
            except NotLowered as error:
                raise Untraceable("constant tensor", f"{error} that forward makes from Python data") from None
        raise Untraceable("constant tensor", f"{attribute(spec.target)} is no buffer, register_buffer makes it one")
    held_tensor = exported.state_dict.get(getattr(spec, "target", None))
    if held_tensor is not None and (held_tensor.is_conj() or held_tensor.is_neg()):
        call = "resolve_conj()" if held_tensor.is_conj() else "resolve_neg()"
        change = "conjugated" if held_tensor.is_conj() else "negated"
        detail = f"the elements of {attribute(spec.target)} are {change} as they are read, register its {call}"
        raise Untraceable(kind, detail)
    if kind == "buffer" and any(one.path == spec.target for one in attributes_of(exported)):
        kind = "attribute"
    return _input(node.name if kind in ("constant", "argument") else spec.target, kind, fake, graph)


def _input(target: str, kind: str, fake: torch.Tensor, graph: Graph) -> Value:
    """The input of that kind; ``target``: an argument's name, or the path of what the module holds."""
    source = target if kind == "argument" else attribute(target)
    op = Input(source, kind, contiguous=kind not in ("argument", "attribute") and fake.is_contiguous())
    value = Value(op, shape_of(fake.shape), fake.dtype, target.replace(".", "_"))
    graph.inputs.append(value)
    return value


def _laid_out(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What two tensors have in common that are the same memory, seen alike."""
    memory = StorageWeakRef(tensor.untyped_storage())
    return memory, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _held(constant: torch.Tensor, exported: ExportedProgram) -> str | None:
    """The parameter or buffer that a constant is, by its path: one that forward reaches through a function of its own."""
    wanted = _laid_out(constant)
    for path, tensor in exported.state_dict.items():
        if _laid_out(tensor) == wanted:
            return str(path)
    return None
