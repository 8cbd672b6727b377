"""Values that a graph reads out of its tensors as a number or a size: a launch cannot depend on them."""

from __future__ import annotations

import functools
import os
import re
import sysconfig
from typing import Any

import torch

from ..graph.build import shape_of
from ..graph.value import Scalar

_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in [^\n]*\n\s*(?P<code>[^\n]+)')
#: where Python's own library is
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
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
        about = f"`{_code(taken)}` ({_line(taken)})" if _frames(taken) else "forward"
        return f"it is given a number that {about} takes out of a tensor"
    if any(not size.free_symbols <= known for size in sizes(node.meta.get("val"))):
        return f"the size of its result depends on the data, the values in the tensors{statement(node)}"
    return ""


def place(node: Any) -> tuple[str, int] | None:
    """(file, line) of the user's code that a node comes from."""
    own = _frames(node)
    return (own[-1]["path"], int(own[-1]["line"])) if own else None


def statement(node: Any) -> str:
    """The statement of the user's that made a node, in brackets after a space; "" where it is not known."""
    return f" (`{_code(node)}`, {_line(node)})" if _frames(node) else ""


def _frames(node: Any) -> list[re.Match[str]]:
    """The frames of the user's that made a node, matches with path, line and code, from forward to the innermost one."""
    frames = _FRAME.finditer((node.meta.get("stack_trace") or "") if node is not None else "")
    return [
        frame
        for frame in frames
        if "site-packages" not in frame["path"] and not frame["path"].startswith(("torch/", _LIBRARY))
    ]


def _code(node: Any) -> str:
    return _frames(node)[-1]["code"]


def _line(node: Any) -> str:
    """The line of the innermost frame, with the file where it is another than forward's."""
    own = _frames(node)
    file = "" if own[0]["path"] == own[-1]["path"] else f" of {os.path.basename(own[-1]['path'])}"
    return f"line {own[-1]['line']}{file}"


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
