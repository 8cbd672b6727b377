"""What the wire says of an exported graph: its operators, its free sizes, its independent dimensions."""

from __future__ import annotations

import traceback
from typing import Any

import torch

from kernel_lsp import class_schema
from kernel_lsp.envelope_constants import UNBOUNDED
from kernel_lsp.synthesis import independence


def operators(exported: torch.export.ExportedProgram) -> dict[str, int]:
    """ATen operator → how often: ``aten.conv2d``, without the overload."""
    counts: dict[str, int] = {}
    for node in exported.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            name = str(node.target.overloadpacket).replace("::", ".")
            counts[name] = counts.get(name, 0) + 1
    return counts


def dynamic(exported: torch.export.ExportedProgram) -> dict[str, list[int]]:
    """Size symbol → [least, most]."""
    ranges = {}
    for symbol, bounds in exported.range_constraints.items():
        ranges[str(symbol)] = [_bound(bounds.lower, 0), min(_bound(bounds.upper, UNBOUNDED), UNBOUNDED)]
    return ranges


def independent(exported: torch.export.ExportedProgram) -> list[class_schema.Independent]:
    """The dimensions along which a reference may be cut.

    Also of a graph with something in it that is not foreseen here: then there is none.
    """
    try:
        return independence.find(exported)
    except Exception:
        traceback.print_exc()
        return []


def _bound(number: Any, otherwise: int) -> int:
    try:
        return int(number)
    except (OverflowError, TypeError, ValueError, AttributeError):  # sympy's infinities
        return otherwise
