"""The envelope of a kernel that a language model wrote: nothing is known of it but what it was validated with."""

from __future__ import annotations

import contextlib
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from kernel_lsp.naming import attribute
from kernel_lsp.synthesis.envelope.conditions import (
    Signature,
    configuration,
    gradient_conditions,
    hooks,
    looked_up_once,
    mode_conditions,
    range_conditions,
    size_conditions,
    structure,
)
from kernel_lsp.synthesis.graph.value import Graph, input_of
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.printing.names import Names


def conditions(
    module: torch.nn.Module, signature: Signature, exported: ExportedProgram | None
) -> tuple[list[str], list[str]]:
    """(conditions with the dynamic sizes free, conditions that pin them), to be joined with ``and`` in this order.

    They use ``_DEVICE``, ``_PLAIN`` and ``_MOST_ELEMENTS``; a parameter gets a name where it is first looked at
    (``type(weight := self.weight) in _PLAIN``). Without ``exported`` every size is pinned in the first list. Raises
    ``Unwritable``.
    """
    graph = _graph(exported, signature)
    shapes = {} if graph is None else {input_of(v).source: v.shape for v in graph.inputs}
    held = [(attribute(name), tensor) for name, tensor in [*module.named_parameters(), *module.named_buffers()]]
    result = [*signature.conditions]
    symbols: dict[sympy.Symbol, str] = {}
    exact: list[str] = []
    tensors = [*signature.tensors, *held]
    for source, tensor in signature.tensors:
        sizes = shapes.get(source, tuple(sympy.Integer(n) for n in tensor.shape))
        result += _tensor(source, tensor, tensors[0][0], argument=True)
        result += size_conditions(source, sizes, symbols)
        dynamic = [i for i, n in enumerate(sizes) if not n.is_number]
        exact += [f"{source}.shape[{i}] == {tensor.shape[i]}" for i in dynamic]
    if graph is not None:
        result += range_conditions(graph, symbols)
    result += structure(module)
    for source, tensor in held:
        result += _tensor(source, tensor, tensors[0][0], argument=False)
        result.append(f"{source}.shape == {tuple(tensor.shape)}")
    whole = any(not tensor.dtype.is_floating_point for _, tensor in tensors)
    result += [*configuration(module, whole), *_unregistered(module), *mode_conditions(module), *hooks(module)]
    result += gradient_conditions([source for source, tensor in tensors if tensor.dtype.is_floating_point])
    names = Names(name.removeprefix("*").partition("=")[0] for name in signature.names)
    return looked_up_once(result, {source: names.fresh(source.removeprefix("self")) for source, _ in held}), exact


def settings_of(module: torch.nn.Module, arguments: list[torch.Tensor]) -> list[str]:
    """The conditions of an envelope that are about neither forward's ``arguments`` nor parameters and buffers.

    Parents come first, so that what later conditions look at is there. Raises ``Unwritable``.
    """
    tensors = [*arguments, *module.parameters(), *module.buffers()]
    whole = any(not tensor.dtype.is_floating_point for tensor in tensors)
    held = [*configuration(module, whole), *_unregistered(module), *mode_conditions(module), *hooks(module)]
    return [*structure(module), *held]


def _tensor(source: str, tensor: torch.Tensor, first: str, argument: bool) -> list[str]:
    """What else but its sizes the kernel may rely on. Triton launches on the current device, wherever a tensor is."""
    result = [f"type({source}) in _PLAIN"]
    if source == first:
        result.append(f"{source}.device.type == _DEVICE")
        result.append(f"({source}.device.index is None or {source}.device.index == torch.cuda.current_device())")
    else:
        result.append(f"{source}.device == {first}.device")
    result.append(f"{source}.dtype == {tensor.dtype}")
    if tensor.layout is not torch.strided:
        return [*result, f"{source}.layout == {tensor.layout}"]
    if argument and tensor.dtype.is_floating_point:
        result.append(f"not {source}.is_neg()")  # a view whose memory holds the negative of its values
    if argument and tensor.is_complex():
        result.append(f"not {source}.is_neg() and not {source}.is_conj()")
    contiguous = tensor.is_contiguous()
    result.append(f"{source}.is_contiguous()" if contiguous else f"{source}.stride() == {tensor.stride()}")
    return result


def _unregistered(module: torch.nn.Module) -> list[str]:
    """Tensors that are neither parameters nor buffers, but for those of one element, which are settings."""
    result = []
    for path, child in module.named_modules():
        for name, value in vars(child).items():
            if isinstance(value, torch.Tensor) and value.numel() != 1 and value.layout is torch.strided:
                source = f"{attribute(path)}.{name}"
                result += [f"{source}.dtype == {value.dtype}", f"{source}.shape == {tuple(value.shape)}"]
                result.append(f"{source}.stride() == {value.stride()}")
    return result


def _graph(exported: ExportedProgram | None, signature: Signature) -> Graph | None:
    """Sizes, their ranges and equalities as torch.export found them, or None where they are not known in full."""
    if exported is None:
        return None
    graph: Graph | None = None
    with contextlib.suppress(Exception):  # what the synthesizer cannot lower a model may well have written
        graph = lower(exported)
    if graph is None:
        graph = _placeholders(exported)
    if graph is None:
        return None
    with contextlib.suppress(Exception):
        signature.name_arguments(graph)
        graph.inputs = [v for v in graph.inputs if input_of(v).kind == "argument"]
        return graph
    return None


def _placeholders(exported: Any) -> Graph | None:
    """The sizes of the arguments alone; None if the graph has checks of its own on them."""
    from kernel_lsp.synthesis.operators.lower import placeholders

    if any("assert" in str(node.target) or "constrain" in str(node.target) for node in exported.graph.nodes):
        return None
    with contextlib.suppress(Exception):
        return placeholders(exported)
    return None
