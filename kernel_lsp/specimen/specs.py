"""What the wire says of tensors: their names, shapes and dtypes, and the least bytes that a call has to read and write."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema
from kernel_lsp.specimen import examples


def spec(name: str, tensor: torch.Tensor) -> class_schema.TensorSpec:
    """A tensor as the wire describes it: shape, dtype such as ``float32``, stride in elements, device."""
    return class_schema.TensorSpec(
        name=name,
        shape=[int(n) for n in tensor.shape],
        dtype=str(tensor.dtype).removeprefix("torch."),
        stride=[int(n) for n in tensor.stride()],
        device=str(tensor.device),
    )


def of_outputs(outputs: Any) -> list[class_schema.TensorSpec]:
    """What forward returns: ``output``, or ``output0``, ``output1`` and so on."""
    tensors = [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor)]
    names = ["output"] if len(tensors) == 1 else [f"output{i}" for i in range(len(tensors))]
    return [spec(name, tensor) for name, tensor in zip(names, tensors, strict=True)]


def input_names(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for every leaf of (args, kwargs), in the order of the flattened tree: ``x``, ``mask``, ``pair[0]``."""
    parameters = [p for p in inspect.signature(cls.forward).parameters.values()][1:]  # type: ignore[attr-defined]
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = []
    for key_path, _ in pytree.tree_flatten_with_path((args, kwargs))[0]:
        _, first, *rest = key_path
        index = getattr(first, "idx", None)
        if index is None:
            name = str(first.key)  # type: ignore[attr-defined]
        else:
            name = positional[index] if index < len(positional) else f"args[{index - len(positional)}]"
        names.append(name + pytree.keystr(tuple(rest)))
    return names


def of_inputs(cls: type, example: examples.Example, exported: Any) -> list[class_schema.TensorSpec]:
    """What forward is given; ``exported``, where it is a graph, says which sizes are free."""
    leaves = pytree.tree_leaves((example.args, example.kwargs))
    names = input_names(cls, example.args, example.kwargs)
    symbols: list[list[str | None] | None] = [None] * len(leaves)
    if isinstance(exported, torch.export.ExportedProgram):
        values = {n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"}
        for i, user_input in enumerate(exported.graph_signature.user_inputs[: len(leaves)]):
            value = values.get(user_input) if isinstance(user_input, str) else None
            if isinstance(value, torch.Tensor):
                symbols[i] = [None if str(n).isdigit() else str(n) for n in value.shape]
    specs = []
    for name, leaf, dynamic in zip(names, leaves, symbols, strict=True):
        if isinstance(leaf, torch.Tensor):
            one = spec(name, leaf)
            one.dynamic = dynamic or [None] * leaf.dim()
            specs.append(one)
    return specs


def other_arguments(cls: type, example: examples.Example) -> list[str]:
    """What forward is given, or has by default, beside tensors and what holds tensors: ``causal=True``."""
    bound = inspect.signature(cls.forward).bind(None, *example.args, **example.kwargs)  # type: ignore[attr-defined]
    variadic = {p.name for p in bound.signature.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    bound.apply_defaults()
    given = {name: value for name, value in [*bound.arguments.items()][1:] if name not in variadic or value}
    return [
        f"{name}={value!r}"
        for name, value in given.items()
        if not any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))
    ]


def _size(tensor: torch.Tensor) -> int:
    """Bytes that have to move: a dimension of stride 0 is read once."""
    count = 1
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= 1 if stride == 0 else int(n)
    return count * tensor.element_size()


def least_bytes(module: torch.nn.Module, example: examples.Example, outputs: Any) -> int:
    """Least traffic: every input, parameter and buffer read once, every output written once."""
    read = [t for t in pytree.tree_leaves((example.args, example.kwargs)) if isinstance(t, torch.Tensor)]
    read += [*module.parameters(), *module.buffers()]
    written = [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor)]
    return sum(_size(t) for t in read) + sum(_size(t) for t in written)
