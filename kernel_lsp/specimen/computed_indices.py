"""Whether forward reads at indices that it computes from floats, as in ``table[(x * 7).long()]``, and nothing bounds them.

A rule of thumb over the operators: it does not know the sizes of tables, NaN and infinity, and of an operator that it has no rule for
it takes that bounded values give bounded ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import Node

#: operator → which of its arguments has the indices
_READING = {
    **dict.fromkeys(("embedding", "index", "index_put", "take", "nll_loss", "cross_entropy_loss"), 1),
    **dict.fromkeys(("gather", "index_select", "index_add", "scatter", "scatter_add"), 2),
}
#: what they give is bounded by a size or a number
_WITHIN = {
    *("argmax", "argmin", "argsort", "searchsorted", "bucketize", "nonzero", "multinomial", "arange"),
    *("sigmoid", "tanh", "sin", "cos", "erf", "atan", "sign", "sgn", "softmax", "_softmax"),
    *("hardtanh", "hardsigmoid", "relu6", "bernoulli", "count_nonzero"),
    *("zeros_like", "ones_like", "full_like", "rand_like", "empty_like"),
    *("new_zeros", "new_ones", "new_full", "new_empty"),
}
#: they give values, and the places of these as item 1
_PAIRS = {
    *("topk", "sort", "max", "min", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"),
    *("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"),
}
#: a bound of all that they are given, from below or above, is one of what they give
_KEEPING = _PAIRS | {
    *("getitem", "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "t", "numpy_T"),
    *("expand", "slice", "select", "narrow", "flatten", "unflatten"),
    *("movedim", "swapaxes", "diagonal", "unfold", "as_strided"),
    *("cat", "stack", "split", "split_with_sizes", "chunk", "unbind", "repeat", "repeat_interleave", "roll", "flip"),
    *("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "copy", "to", "_to_copy", "dropout"),
    *("floor", "ceil", "round", "trunc", "fix"),
    *("where", "masked_fill", "masked_select", "tril", "triu", "pad", "constant_pad_nd"),
    *("slice_scatter", "select_scatter", "amax", "amin", "sum", "mean", "cumsum", "logsumexp", "leaky_relu"),
    *("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
}
#: only the elements of their first argument are in what they give
_OF_THE_FIRST = {
    *("embedding", "index", "gather", "take", "index_select", "take_along_dim"),
    *("view_as", "expand_as", "reshape_as", "type_as"),
}
#: what they give has a lower bound, and grows with what they are given
_FROM_BELOW = {
    *("relu", "exp", "exp2", "expm1", "sqrt", "softplus", "gelu", "silu", "mish", "elu", "celu", "selu", "hardswish"),
}
#: what they give has a lower bound, and grows with what they are given in either direction
_EVEN = {"abs", "absolute", "square", "cosh", "linalg_vector_norm", "norm", "var", "std"}
#: they give any number for bounded ones
_POLES = {"reciprocal", "rsqrt", "log", "log2", "log10", "tan", "logit", "special_logit", "atanh"}


class _Bounds(NamedTuple):
    low: bool
    high: bool
    fixed: bool = False  # no float that forward is given has a part in it

    @property
    def both(self) -> bool:
        return self.low and self.high


_OPEN, _CLOSED, _FIXED = _Bounds(False, False), _Bounds(True, True), _Bounds(True, True, fixed=True)
#: the bounds of an argument, by its place
_Of = Callable[[int], _Bounds]


def unbounded(exported: torch.export.ExportedProgram) -> bool:
    """Whether there is such an index; one of an integer input is none of these, nor is one of the module's own tensors."""
    given, known = set(exported.graph_signature.user_inputs), dict[Node, _Bounds]()
    for node in exported.graph.nodes:
        known[node] = _bounds(node, known, given)
    return any(not known[index].both for index in _indices(exported.graph))


def _indices(graph: torch.fx.Graph) -> Iterator[Node]:
    """The integers by which operators read or write."""
    for node in graph.nodes:
        place = _READING.get(_name(node))
        if place is not None:
            yield from (one for one in _flat(node.args[place : place + 1]) if _is_integer(one))


def _bounds(node: Node, known: dict[Node, _Bounds], given: set[Any]) -> _Bounds:
    """What is known of a node's values, from what is known of those before it."""
    if node.op == "placeholder":
        return _OPEN if node.name in given and _dtype(node).is_floating_point else _FIXED
    parts = [known[one] for one in _flat((node.args, node.kwargs))]
    if not _has_values(node) or all(part.fixed for part in parts):
        return _FIXED
    if _is_within(node):
        return _CLOSED

    def of(place: int) -> _Bounds:
        return _together([known[one] for one in _flat(node.args[place : place + 1])])

    name = _name(node)
    if name in _RULES and "alpha" not in node.kwargs:
        return _RULES[name](node, of)
    return _by_kind(name, of(0), _together(parts))


def _by_kind(name: str, first: _Bounds, all_of_them: _Bounds) -> _Bounds:
    if name in _OF_THE_FIRST:
        return first
    if name in _KEEPING:
        return all_of_them
    if name in _FROM_BELOW:
        return _Bounds(True, first.high)
    if name in _EVEN:
        return _Bounds(True, first.both)
    return _OPEN if name in _POLES else _only_both(all_of_them)


def _is_within(node: Node) -> bool:
    """Whether a value's numbers are bounded whatever it is computed from."""
    name = _name(node)
    chosen = name == "getitem" and node.args[1] == 1 and _name(node.args[0]) in _PAIRS
    truths = isinstance(node.meta.get("val"), torch.Tensor) and _dtype(node) is torch.bool
    return chosen or name in _WITHIN or truths


def _together(parts: list[_Bounds]) -> _Bounds:
    """The bounds of values each of which is one of these, or a sum of them."""
    return _Bounds(*(all(part[i] for part in parts) for i in range(3)))


def _only_both(bounds: _Bounds) -> _Bounds:
    return _CLOSED if bounds.both else _OPEN


def _mirrored(bounds: _Bounds) -> _Bounds:
    return _Bounds(bounds.high, bounds.low, bounds.fixed)


def _greatest(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(a.low or b.low, a.high and b.high)


def _least(a: _Bounds, b: _Bounds) -> _Bounds:
    return _Bounds(a.low and b.low, a.high or b.high)


def _clamped(node: Node, of: _Of) -> _Bounds:
    found = of(0)
    for place, cut in ((1, _greatest), (2, _least)):
        limit = _argument(node, place, ("", "min", "max")[place])
        if limit is not None:
            found = cut(found, of(place))
    return found


def _product(node: Node, of: _Of) -> _Bounds:
    for place in (0, 1):
        sign = _sign(node.args[place])
        if sign is not None:
            return _scaled(of(1 - place), sign)
    return _only_both(_together([of(0), of(1)]))


def _quotient(node: Node, of: _Of) -> _Bounds:
    if not of(1).fixed:
        return _OPEN
    sign = _sign(node.args[1])
    return _only_both(of(0)) if sign is None else _scaled(of(0), sign)


def _power(node: Node, of: _Of) -> _Bounds:
    exponent = node.args[1]
    if isinstance(exponent, int | float) and exponent < 0:
        return _OPEN
    even = isinstance(exponent, int | float) and exponent % 2 == 0
    both = of(0).both and of(1).both
    return _Bounds(even or both, both)


def _scaled(bounds: _Bounds, sign: float) -> _Bounds:
    return bounds if sign > 0 else _mirrored(bounds) if sign < 0 else _CLOSED


def _masked(node: Node, of: _Of) -> _Bounds:
    """``x & 3`` is in 0 to 3; a negative number bounds nothing."""
    return _CLOSED if any(of(i).both and _sign(node.args[i]) != -1 for i in (0, 1)) else _OPEN


def _sign(argument: Any) -> float | None:
    """The sign of a number; a size counts as positive, and that of a tensor is not known."""
    if isinstance(argument, Node):
        return None if _has_values(argument) else 1
    if isinstance(argument, complex):
        return None
    return math.copysign(1, argument) if argument else 0


def _argument(node: Node, place: int, name: str) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name)


_RULES: dict[str, Callable[[Node, _Of], _Bounds]] = {
    "add": lambda node, of: _together([of(0), of(1)]),
    "sub": lambda node, of: _together([of(0), _mirrored(of(1))]),
    "rsub": lambda node, of: _together([_mirrored(of(0)), of(1)]),
    "neg": lambda node, of: _mirrored(of(0)),
    "mul": _product,
    **dict.fromkeys(("div", "true_divide", "floor_divide"), _quotient),
    "pow": _power,
    **dict.fromkeys(("remainder", "fmod"), lambda node, of: _only_both(of(1))),
    **dict.fromkeys(("bitwise_and", "__and"), _masked),
    **dict.fromkeys(("clamp", "clip"), _clamped),
    **dict.fromkeys(("clamp_min", "maximum"), lambda node, of: _greatest(of(0), of(1))),
    **dict.fromkeys(("clamp_max", "minimum"), lambda node, of: _least(of(0), of(1))),
    **dict.fromkeys(("index_put", "_index_put_impl"), lambda node, of: _together([of(0), of(2)])),
    **dict.fromkeys(("scatter", "scatter_add", "index_add"), lambda node, of: _together([of(0), of(3)])),
}


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
