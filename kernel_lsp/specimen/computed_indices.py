"""Whether forward reads at indices that it computes from numbers, as in ``table[(x * 7).long()]``, and nothing bounds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

#: their first argument is the table; indices are among the others
_READING = (
    *("embedding", "index", "gather", "take", "index_select", "index_put", "index_add", "scatter", "scatter_add"),
    *("nll_loss", "cross_entropy_loss"),
)
#: what they give is bounded by a size or a number
_CHOOSING = (
    "argmax",
    "argmin",
    "argsort",
    "searchsorted",
    "bucketize",
    "nonzero",
    "multinomial",
    "arange",
    "remainder",
)
_PAIRS = ("topk", "sort", "max", "min", "kthvalue", "median", "mode")
_FROM_BELOW = ("clamp_min", "relu", "abs", "maximum")
_FROM_ABOVE = ("clamp_max", "minimum")
_BOTH = ("clamp", "clip")


def unbounded(exported: torch.export.ExportedProgram) -> bool:
    """Whether there is such an index; one of an integer input is none of these, nor is one of the module's own tensors."""
    given = set(exported.graph_signature.user_inputs)
    return any(_from_floats(index, given) for index in _indices(exported.graph))


def _indices(graph: torch.fx.Graph) -> Iterator[Node]:
    """The integers by which operators read."""
    for node in graph.nodes:
        if _name(node) in _READING:
            others = node.args[1:]
            yield from (one for one in _flat((others, node.kwargs)) if _is_integer(one))


def _from_floats(index: Node, given: set[Any]) -> bool:
    """Whether floats that forward is ``given`` decide an index, and nothing bounds it from below and from above."""
    waiting, seen = [(index, False, False)], set()
    while waiting:
        state = node, low, high = waiting.pop()
        if state in seen or (low and high) or _is_within(node):
            continue
        seen.add(state)
        if node.op == "placeholder" and node.name in given and _dtype(node).is_floating_point:
            return True
        name = _name(node)
        low = low or name in _FROM_BELOW or (name in _BOTH and _limit(node, 1) is not None)
        high = high or name in _FROM_ABOVE or (name in _BOTH and _limit(node, 2) is not None)
        waiting += [(one, low, high) for one in _flat((node.args, node.kwargs)) if _has_values(one)]
    return False


def _is_within(node: Node) -> bool:
    """Whether a value's numbers are bounded whatever it is computed from."""
    name = _name(node)
    chosen = name == "getitem" and _is_integer(node) and _name(node.args[0]) in _PAIRS
    return (
        chosen or name in _CHOOSING or (isinstance(node.meta.get("val"), torch.Tensor) and _dtype(node) is torch.bool)
    )


def _limit(node: Node, place: int) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(("min", "max")[place - 1])


def _name(node: Any) -> str:
    """``index_select`` of ``aten.index_select.default``, without the mark of what happens in place."""
    target = getattr(node, "target", "")
    packet = getattr(target, "overloadpacket", target)
    return str(getattr(packet, "__name__", packet)).rstrip("_")


def _dtype(node: Node) -> torch.dtype:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else torch.bool


def _has_values(node: Node) -> bool:
    """Whether it is a tensor, or several, rather than a size."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor | tuple | list)


def _is_integer(node: Node) -> bool:
    dtype = _dtype(node)
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def _flat(tree: Any) -> list[Node]:
    found: list[Node] = []
    torch.fx.map_arg(tree, found.append)
    return found
