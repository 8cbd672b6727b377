"""What a class's text says of the shape of an input: how forward unpacks it, its first layer, the dimensions it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SPATIAL = re.compile(
    r"(?:Lazy)?(Conv|ConvTranspose|BatchNorm|InstanceNorm|MaxPool|AvgPool|AdaptiveAvgPool|AdaptiveMaxPool)([123])d$"
)
_OF_FUNCTION = re.compile(r"(?:conv|conv_transpose|max_pool|avg_pool|adaptive_avg_pool|adaptive_max_pool)([123])d$")
_WITH_CHANNELS = ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
_LAST = {"Linear": "in_features", "LayerNorm": "normalized_shape", "RMSNorm": "normalized_shape"}
_OF_STEPS = ("LSTM", "GRU", "RNN")
#: Methods, and functions of torch, whose numbers are dimensions of the input.
_OF_DIMS = frozenset(["mean", "sum", "amax", "amin", "var", "std", "softmax", "log_softmax", "transpose", "size", "flatten", "cumsum", "argmax"])  # fmt: skip
#: Dimensions beyond which a number is no dimension, as that of ``size``.
_MOST_DIMS = 7


@dataclass(frozen=True)
class Shape:
    """``rank``: of the input, 0 where nothing says it; ``channels``: of dimension 1; ``last``: size of the last dimension.

    ``below``: of an input of integers, what they are less than. ``spatial``: whether the dimensions behind the channels are places.
    """

    rank: int = 0
    channels: int | None = None
    last: int | None = None
    below: int | None = None
    spatial: bool = False

    def sizes(self, size: int) -> tuple[int, ...] | None:
        """A shape to begin with, ``size`` where nothing says how many; None where nothing is known."""
        last = self.last or size
        if self.spatial or self.rank > 3:
            places = {3: (128,), 4: (32, 32), 5: (8, 16, 16)}.get(self.rank, (4,) * (self.rank - 2))
            found = (2, self.channels or 64, *places)
            return (*found[:-1], self.last or found[-1])
        if self.rank == 3:
            return (2, 16, last)
        if self.rank == 2 and self.channels:
            return (8, self.channels)
        return (8, last) if self.last or self.rank == 2 else (last,) if self.rank == 1 else None


def shape_of(name: str, forward: ast.FunctionDef, init: ast.FunctionDef | None, sizes: Mapping[str, int]) -> Shape:
    """What is said of the argument ``name`` of ``forward``. ``sizes``: what parameters of the constructor are given."""
    least = 0
    for node in _until_set_anew(name, forward):
        if (count := _unpacked(node, name)) or (count := _permuted(node, name)):
            return _with_layer(Shape(rank=count), _layer(name, forward, init, sizes))
        least = max(least, _named_dims(node, name))
    layer = _layer(name, forward, init, sizes)
    return _with_layer(Shape(rank=least if least > 2 else 0), layer)


def _with_layer(shape: Shape, layer: Shape | None) -> Shape:
    if layer is None:
        return shape
    rank = layer.rank if layer.spatial else max(shape.rank, layer.rank)
    return Shape(rank, layer.channels, layer.last, layer.below, layer.spatial)


def _until_set_anew(name: str, forward: ast.FunctionDef) -> Iterator[ast.AST]:
    """The parts of forward's statements up to the one that gives ``name`` another value, its right side among them."""
    for statement in forward.body:
        yield from ast.walk(statement)
        if any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name for n in ast.walk(statement)):
            return


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _unpacked(node: ast.AST, name: str) -> int:
    """Of ``b, t, d = x.shape`` or ``= x.size()``: how many dimensions; else 0."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple | ast.List):
        return 0
    given = node.value
    if isinstance(given, ast.Call) and not given.args and isinstance(given.func, ast.Attribute):
        given = given.func if given.func.attr == "size" else given
    if not (isinstance(given, ast.Attribute) and given.attr in ("shape", "size") and _is(given.value, name)):
        return 0
    targets = node.targets[0].elts
    return 0 if any(isinstance(target, ast.Starred) for target in targets) else len(targets)


def _permuted(node: ast.AST, name: str) -> int:
    """Of ``x.permute(0, 2, 3, 1)``: how many dimensions; else 0."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "permute"
    if not called or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return 0
    numbers = _numbers(node.args)
    return len(numbers) if _is(node.func.value, name) else 0


def _named_dims(node: ast.AST, name: str) -> int:
    """The least number of dimensions with which ``x.mean((2, 3))``, ``x.shape[2]`` or ``x[:, :, 0]`` runs."""
    if isinstance(node, ast.Subscript):
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and _is(node.value.value, name):
            return _rank(_numbers(places))
        plain = [p for p in places if not isinstance(p, ast.Constant) or isinstance(p.value, int)]
        return len(plain) if _is(node.value, name) and len(plain) == len(places) else 0
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _OF_DIMS:
        return 0
    own = _is(node.func.value, name)
    if not own and not (node.args and _is(node.args[0], name)):
        return 0
    given = [*(node.args if own else node.args[1:]), *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
    return _rank(_numbers(given))


def _rank(dims: list[int]) -> int:
    ranks = (d + 1 if d >= 0 else -d for d in dims)
    return max((rank for rank in ranks if rank <= _MOST_DIMS), default=0)


def _numbers(given: list[ast.expr]) -> list[int]:
    """The whole numbers among expressions, those in tuples and lists, too."""
    found: list[int] = []
    for one in given:
        if isinstance(one, ast.Tuple | ast.List):
            found += _numbers(one.elts)
        elif (number := _number(one, {})) is not None:
            found.append(number)
    return found


def _number(node: ast.expr | None, sizes: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, sizes)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return sizes.get(node.id) if isinstance(node, ast.Name) else None


def _layer(name: str, forward: ast.FunctionDef, init: ast.FunctionDef | None, sizes: Mapping[str, int]) -> Shape | None:
    """What the first layer says that forward gives the input to."""
    for node in _until_set_anew(name, forward):
        if not isinstance(node, ast.Call) or not node.args or not _is(node.args[0], name):
            continue
        if not isinstance(node.func, ast.Attribute):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
            found = _made(node.func.attr, init)
            shape = _of_layer(found, sizes) if found is not None else None
            if shape is not None:
                return shape
        elif of_function := _OF_FUNCTION.match(node.func.attr):
            return Shape(rank=int(of_function[1]) + 2, spatial=True)
    return None


def _made(attribute: str, init: ast.FunctionDef | None) -> ast.Call | None:
    """The call that makes ``self.attribute``; of a Sequential, its first layer's."""
    for node in ast.walk(init) if init is not None else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        target, call = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and _is(target.value, "self") and target.attr == attribute:
            while ast.unparse(call.func).rpartition(".")[2] == "Sequential" and call.args:
                first = call.args[0]
                if not isinstance(first, ast.Call):
                    return None
                call = first
            return call
    return None


def _of_layer(call: ast.Call, sizes: Mapping[str, int]) -> Shape | None:
    kind = ast.unparse(call.func).rpartition(".")[2]

    def argument(keyword: str) -> int | None:
        named = next((k.value for k in call.keywords if k.arg == keyword), None)
        return _number(named or (call.args[0] if call.args else None), sizes)

    if spatial := _SPATIAL.match(kind):
        with_channels = spatial[1] in _WITH_CHANNELS and not kind.startswith("Lazy")
        channels = argument("in_channels" if "Conv" in kind else "num_features") if with_channels else None
        places = int(spatial[2])
        if kind == "BatchNorm1d":  # of rows as well as of sequences
            return Shape(rank=2, channels=channels)
        return Shape(rank=places + 2, channels=channels, spatial=True)
    if kind == "Embedding":
        return Shape(below=argument("num_embeddings") or 100)
    if kind in _LAST:
        return Shape(last=argument(_LAST[kind]))
    if kind in _OF_STEPS:
        return Shape(rank=3, last=argument("input_size"))
    return None
