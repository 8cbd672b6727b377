"""Sizes of a view as forward asks for them: of ``x.view(b, h // 4, 4, c)`` torch.export says that the third is ``h // (h // 4)``.

With no number there, what is computed of it would have no number for its size either. While forward is traced such a view is expanded to
the numbers that were asked for, which torch.export notes down as a condition; from the graph the expansion is taken again.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

_VIEWS = (torch.Tensor.view, torch.Tensor.reshape, torch.reshape)
_UNFLATTENED = (torch.Tensor.unflatten, torch.unflatten)
_EXPAND = torch.ops.aten.expand.default


class AskedSizes(TorchFunctionMode):
    """In this context views have the numbers for sizes that they are asked for.

    Attributes:
        used: whether one of them was expanded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        asked = () if kwargs else _asked(func, args)
        if len(asked) != (result.dim() if asked else -1) or not any(map(_is_other, asked, result.shape)):
            return result
        self.used = True
        return result.expand([one if _is_other(one, n) else -1 for one, n in zip(asked, result.shape, strict=True)])


def _asked(func: Any, args: tuple[Any, ...]) -> Sequence[Any]:
    """The sizes that a call which makes a view asks for; none of other calls."""
    if func in _VIEWS and len(args) > 1:
        return args[1] if isinstance(args[1], Sequence) else args[1:]
    if func in _UNFLATTENED and len(args) == 3 and isinstance(args[1], int):
        dim = args[1] % args[0].dim()
        return (*args[0].shape[:dim], *args[2], *args[0].shape[dim + 1 :])
    return ()


def _is_other(asked: Any, size: Any) -> bool:
    """Whether a number was asked for where the size is an expression."""
    return type(asked) is int and asked >= 0 and isinstance(size, torch.SymInt)


def are_changed(exported: ExportedProgram) -> bool:
    """Whether an operator may change an expanded view in place, or a graph within this one changes anything.

    What torch makes of a change to an expanded view are no plain operators: it adds what the change comes to, which is NaN for infinities.
    """
    inner = [part for part in exported.graph_module.modules() if hasattr(part, "graph")]
    for part in inner:
        views: set[torch.fx.Node] = set()
        for node in part.graph.nodes:
            reads_one = any(source in views for source in node.all_input_nodes)
            schema = getattr(node.target, "_schema", None)
            if schema is not None and schema.is_mutable and (reads_one or part is not exported.graph_module):
                return True
            aliases = node.target is operator.getitem or schema is None or any(one.alias_info for one in schema.returns)
            if node.target is _EXPAND or (reads_one and aliases):
                views.add(node)
    return False


def settle(exported: ExportedProgram) -> None:
    """Take expansions that change nothing from the graph: what they are of has their sizes."""
    for node in list(exported.graph.nodes):
        if node.target is not _EXPAND:
            continue
        of = node.args[0]
        source, made = of.meta.get("val"), node.meta.get("val")
        if source is not None and source.dim() == made.dim() and all(map(_same, source.shape, made.shape)):
            of.meta["val"] = made
            node.replace_all_uses_with(of)
            exported.graph.erase_node(node)


def _same(size: Any, other: Any) -> bool:
    """Whether two sizes are one: the same expression, or a number that torch.export has noted an expression to be."""
    if isinstance(size, torch.SymInt) and not isinstance(other, torch.SymInt):
        return bool(size.node.hint == other != 1)
    return str(size) == str(other)
