"""The envelope of a kernel that the synthesizer wrote: what its graph says of the tensors that it reads."""

from __future__ import annotations

import torch

from kernel_lsp.envelope import rules
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.envelope.sizes import Sizes
from kernel_lsp.envelope.tensors import Tensor

from ..graph.lowered import Graph
from ..graph.value import Input, Value, input_of


def name_arguments(graph: Graph, signature: Signature) -> None:
    """Give the graph's arguments, which come in the order of the flattened call, their Python.

    Raises:
        Unwritable: they are not as many, or one cannot be written down.
    """
    arguments = [v for v in graph.inputs if isinstance(v.op, Input) and v.op.kind == "argument"]
    for value, text in zip(arguments, signature.flattened(len(arguments)), strict=True):
        input_of(value).source = text


def conditions(
    module: torch.nn.Module,
    graph: Graph,
    signature: Signature,
    used: list[tuple[str, Value]],
    requires: list[str],
    *,
    contiguous: list[Value],
    bounded: bool = True,
) -> list[str]:
    """Conditions for the kernels of ``graph``, to be joined with ``and``, and comments (``rules.conditions``).

    ``used``: what the host function is given, with its names there; ``requires``: conditions of the tilings; ``contiguous``: what kernels
    read as it lies in memory; ``bounded``: the kernels' offsets have 32 bits.

    Raises:
        Unwritable: one of them has no text.
    """
    state = [(name, v) for name, v in used if input_of(v).kind != "argument"]
    looked_at = [v for v in graph.looked_at if all(v is not other for _, other in state)]
    return rules.conditions(
        rules.Basis(
            module,
            signature,
            arguments=[_tensor(v, contiguous) for v in graph.inputs if input_of(v).kind == "argument"],
            state=[_tensor(v, contiguous) for v in [*(v for _, v in state), *looked_at]],
            names={input_of(v).source: name for name, v in state if name not in signature.names},
            # An integer times 2 is an integer, times 2.0 it is a float.
            exact=any(not v.dtype.is_floating_point for v in graph.inputs),
            sizes=Sizes(graph.ranges, graph.equal, graph.not_one, graph.assumed, bounded),
            requires=[*requires, *_apart(graph)],
            carried=frozenset(graph.carried),
        )
    )


def _apart(graph: Graph) -> list[str]:
    """That an attribute which is changed in place lies in other memory than what is read beside it."""
    memory = "{}.untyped_storage().data_ptr()".format
    read = [v for v in graph.inputs if input_of(v).kind == "argument" or v in graph.looked_at]
    changed = [v for v in graph.updates if input_of(v).kind == "attribute"]
    return [
        f"{memory(input_of(one).source)} != {memory(input_of(other).source)}"
        for i, one in enumerate(changed)
        for other in read
        if other is not one and other not in changed[:i]
    ]


def _tensor(value: Value, contiguous: list[Value]) -> Tensor:
    read, given = input_of(value), ("argument", "attribute")
    return Tensor(
        read.source,
        value.dtype,
        value.shape,
        argument=read.kind in given,
        contiguous=any(value is v for v in contiguous),
    )
