"""Values that a graph reads out of its tensors as a number or a size: a launch cannot depend on them."""

from __future__ import annotations

import functools
import re
from typing import Any

import torch

from ..graph.build import shape_of
from ..graph.value import Scalar

_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in [^\n]*\n\s*(?P<code>[^\n]+)')
_TAKES_OUT = ("aten.item.default", "aten._local_scalar_dense.default")


def sizes(fake: Any) -> list[Any]:
    """The sizes of a node's results."""
    if isinstance(fake, list | tuple):
        return [n for f in fake for n in sizes(f)]
    return list(shape_of(fake.shape)) if isinstance(fake, torch.Tensor) else []


@functools.lru_cache(maxsize=1)
def _known_symbols(graph: Any) -> set[Any]:
    """The symbols of the arguments' sizes."""
    known: set[Any] = set()
    for other in graph.nodes:
        if other.op == "placeholder" and isinstance(other.meta.get("val"), torch.Tensor):
            known |= {s for n in shape_of(other.meta["val"].shape) for s in n.free_symbols}
    return known


def why(node: Any, arguments: Any) -> str:
    """What of a call's ``arguments`` and results depends on values in the tensors, as a clause; "" if nothing does."""
    known = _known_symbols(node.graph)
    numbers = [leaf for leaf in torch.utils._pytree.tree_leaves(arguments) if isinstance(leaf, Scalar)]
    if any(not number.expr.free_symbols <= known for number in numbers):
        taken = _taken_out(node)
        about = f"`{_frame(taken)['code']}` ({_line(taken)})" if _frame(taken) else "forward"
        return f"it is given a number that {about} takes out of a tensor"
    if any(not size.free_symbols <= known for size in sizes(node.meta.get("val"))):
        about = f" (`{_frame(node)['code']}`, {_line(node)})" if _frame(node) else ""
        return f"the size of its result depends on the data, the values in the tensors{about}"
    return ""


def place(node: Any) -> tuple[str, int] | None:
    """(file, line) of the user's code that a node comes from."""
    found = _frame(node)
    return (found["path"], int(found["line"])) if found else None


def _frame(node: Any) -> Any:
    """The innermost frame of the user's that made a node, a match with path, line and code; {} where it is not known."""
    frames = [*_FRAME.finditer((node.meta.get("stack_trace") or "") if node is not None else "")]
    own = [frame for frame in frames if "site-packages" not in frame["path"] and not frame["path"].startswith("torch/")]
    return own[-1] if own else {}


def _line(node: Any) -> str:
    return f"line {_frame(node)['line']}"


def _taken_out(node: Any) -> Any:
    """The node above ``node`` that made a number of a tensor; None where there is none."""
    seen, stack = set(), [*node.all_input_nodes]
    while stack:
        one = stack.pop()
        if str(one.target) in _TAKES_OUT:
            return one
        if one not in seen and not isinstance(one.meta.get("val"), torch.Tensor):
            seen.add(one)
            stack.extend(one.all_input_nodes)
    return None
