"""What the operator families build with: values with their shapes and dtypes worked out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import sympy
import torch

from ..graph.sizes import ONE, same_shape
from . import maps
from .map import Map, compose
from .value import Concat, Contract, Gather, Iota, Pointwise, Reduce, Scalar, Scan, Shape, Value, View, numel

Operand = Value | Scalar | float | int | bool


class NotLowered(Exception):
    """This operator, with these arguments, has no lowering; it stays a torch call."""


def shape_of(sizes: Any) -> Shape:
    """torch sizes (integers and SymInts) as sympy expressions."""
    return tuple(expr_of(n) for n in sizes)


def expr_of(n: Any) -> sympy.Expr:
    """A size, a number or a ``Scalar`` as sympy has it; torch's symbolic sizes keep their symbols."""
    if isinstance(n, torch.SymInt | torch.SymFloat):
        return n.node.expr
    if isinstance(n, Scalar):
        return n.expr
    return sympy.sympify(n)


#: Eight-bit floats that kernels read and write. They are no numbers to compute with: a value of theirs is converted first.
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def opmath(dtype: torch.dtype) -> torch.dtype:
    """The dtype a kernel computes in: float32 for half precisions, else the dtype itself."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that tensors of these broadcast to, from the right; sizes that differ are not checked."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[sympy.Expr] = [ONE] * rank
    for shape in shapes:
        for i, n in enumerate(shape, start=rank - len(shape)):
            if n != ONE:
                result[i] = n
    return tuple(result)


def _dtype_of(operand: Operand) -> torch.dtype:
    if isinstance(operand, Value):
        return operand.dtype
    if isinstance(operand, Scalar):
        return torch.float32 if operand.is_float else torch.int64
    return torch.bool if isinstance(operand, bool) else torch.int64 if isinstance(operand, int) else torch.float32


def _conversion(dtype: torch.dtype) -> str:
    names = {
        torch.float32: "to_float32",
        torch.float64: "to_float64",
        torch.int32: "to_int32",
        torch.int64: "to_int64",
        torch.int16: "to_int16",
        torch.int8: "to_int8",
        torch.uint8: "to_uint8",
        torch.bool: "to_bool",
        torch.float8_e4m3fn: "to_float8_e4m3fn",
        torch.float8_e5m2: "to_float8_e5m2",
    }
    name = names.get(opmath(dtype))
    if name is None:
        raise NotLowered(f"no conversion to {dtype} yet")
    return name


def number_in(number: float | int | bool, dtype: torch.dtype) -> float | int | bool:
    """What a tensor of ``dtype`` holds where torch fills it with ``number``: whether it is zero, or a whole number in its range.

    Raises:
        NotLowered: NaN and infinities among integers, for which torch raises an error where they come to a place at all.
    """
    if dtype.is_complex:
        return number
    if dtype.is_floating_point:
        return float(number)
    if dtype == torch.bool:
        return bool(number)
    if not math.isfinite(number):
        raise NotLowered("NaN or an infinity as an integer")
    limits = torch.iinfo(dtype)
    return (int(number) - limits.min) % (limits.max - limits.min + 1) + limits.min


class Build:
    """Constructors for values. Stateless but for convenience of one import."""

    @staticmethod
    def pointwise(
        function: str, *operands: Operand, dtype: torch.dtype | None = None, name: str = "", meaning: Any = None
    ) -> Value:
        """``function`` of broadcast operands. ``dtype``: the result's; default the first tensor's opmath."""
        tensors = [v for v in operands if isinstance(v, Value)]
        shape = broadcast_shapes(*(v.shape for v in tensors))
        if dtype is None:
            dtype = opmath(tensors[0].dtype)
        return Value(Pointwise(function, operands), shape, dtype, name, meaning)

    @overload
    @staticmethod
    def cast(operand: Value, dtype: torch.dtype) -> Value: ...
    @overload
    @staticmethod
    def cast(operand: Operand, dtype: torch.dtype) -> Operand: ...
    @staticmethod
    def cast(operand: Operand, dtype: torch.dtype) -> Operand:
        """``operand`` in ``dtype``'s opmath; rounding to half precision inside a kernel is left to the store.

        To float8 and from it everything goes through float32, as torch does.

        Raises:
            NotLowered: from or to complex numbers, of a constant in float8, and of NaN or an infinity to integers.
        """
        if not isinstance(operand, Value):
            return operand if isinstance(operand, Scalar) else number_in(operand, dtype)
        if opmath(operand.dtype) == opmath(dtype):
            return operand
        if dtype.is_complex or operand.dtype.is_complex:
            raise NotLowered("complex numbers")
        if isinstance(operand.op, Pointwise) and operand.op.function == "constant":
            number = operand.op.operands[0]
            kind = float if dtype.is_floating_point else bool if dtype == torch.bool else int
            if dtype in FLOAT8:  # in a kernel it is a number, and what stores that ends at the largest one
                raise NotLowered("a constant in float8")
            if dtype.is_floating_point or math.isfinite(number):
                return Value(Pointwise("constant", (kind(number),)), operand.shape, opmath(dtype))
        if (dtype in FLOAT8 or operand.dtype in FLOAT8) and torch.float32 not in (opmath(dtype), opmath(operand.dtype)):
            operand = Value(Pointwise("to_float32", (operand,)), operand.shape, torch.float32)
        name = "rounded" if dtype in FLOAT8 else ""  # the number changes: it is one to be seen
        return Value(Pointwise(_conversion(dtype), (operand,)), operand.shape, opmath(dtype), name)

    @classmethod
    def arithmetic(cls, function: str, *operands: Operand, result: torch.dtype, name: str = "") -> Value:
        """``function`` with operands promoted to the result's dtype, as torch promotes."""
        promoted = [cls.cast(v, result) for v in operands]
        return cls.pointwise(function, *promoted, dtype=result, name=name)

    @classmethod
    def comparison(cls, function: str, *operands: Operand) -> Value:
        """A comparison to bool, of operands promoted to their common dtype; integers are compared as they are."""
        common = _dtype_of(operands[0])
        for other in operands[1:]:
            common = torch.promote_types(common, _dtype_of(other))
        tensors = [v for v in operands if isinstance(v, Value)]
        if all(not v.dtype.is_floating_point for v in tensors) and all(isinstance(v, Value | int) for v in operands):
            return cls.pointwise(function, *operands, dtype=torch.bool)
        return cls.pointwise(function, *[cls.cast(v, common) for v in operands], dtype=torch.bool)

    @staticmethod
    def reduce(
        kind: str, operand: Value, dims: tuple[int, ...], *, name: str = "", dtype: torch.dtype | None = None
    ) -> Value:
        """Reduce over ``dims``, kept with size one; what has no dims stays as it is. dtype: int64 for argmax and argmin, else the operand's opmath."""
        if not operand.shape:  # a number, of which nothing is to be reduced
            if kind.startswith("arg"):
                return Value(Pointwise("constant", (0,)), (), torch.int64, name)
            return Value(Pointwise("identity", (operand,)), (), dtype or opmath(operand.dtype), name)
        shape = tuple(ONE if i in dims else n for i, n in enumerate(operand.shape))
        dtype = dtype or (torch.int64 if kind.startswith("arg") else opmath(operand.dtype))
        return Value(Reduce(kind, operand, dims), shape, dtype, name)

    @staticmethod
    def view(operand: Value, map: Map, name: str, *, same_meaning: bool = False) -> Value:
        """``operand`` addressed by ``map``. ``same_meaning``: the elements are the operand's, and its name and meaning stay."""
        kept = (operand.name, operand.meaning) if same_meaning else ("", None)
        return Value(View(map, operand, name), map.shape, operand.dtype, *kept)

    @classmethod
    def views(cls, operand: Value, name: str, *ways: Callable[[Shape], Map]) -> Value:
        """``operand`` addressed in several ways, each of what the one before gives, as one view."""
        whole = ways[0](operand.shape)
        for way in ways[1:]:
            both = compose(way(whole.shape), whole)
            assert both is not None, "two pads"
            whole = both
        return cls.view(operand, whole, name)

    @classmethod
    def reshape(cls, operand: Value, shape: Shape) -> Value:
        """The elements in row-major order in another shape."""
        if same_shape(shape, operand.shape):
            return operand
        return cls.view(operand, maps.reshape(operand.shape, shape), "reshape", same_meaning=True)

    @classmethod
    def squeeze(cls, operand: Value, dims: tuple[int, ...]) -> Value:
        """Without the dimensions ``dims``, each of size one."""
        return cls.view(operand, maps.squeeze(operand.shape, dims), "squeeze", same_meaning=True)

    @classmethod
    def unsqueeze(cls, operand: Value, dim: int) -> Value:
        """With a dimension of size one more, number ``dim`` of the result."""
        return cls.view(operand, maps.unsqueeze(operand.shape, dim), "unsqueeze", same_meaning=True)

    @classmethod
    def permute(cls, operand: Value, dims: tuple[int, ...]) -> Value:
        """Dimension i of the result is dimension ``dims[i]`` of the operand."""
        value = cls.view(operand, maps.permute(operand.shape, dims), "permute")
        value.name = operand.name
        return value

    @classmethod
    def expand(cls, operand: Value, shape: Shape) -> Value:
        """Dimensions of size one repeated to ``shape``, which has the operand's rank."""
        return cls.view(operand, maps.expand(operand.shape, shape), "expand", same_meaning=True)

    @classmethod
    def slice(cls, operand: Value, dim: int, start: sympy.Expr, step: sympy.Expr, size: sympy.Expr) -> Value:
        """``size`` places of ``dim``, ``step`` apart, from ``start``."""
        return cls.view(operand, maps.slice_(operand.shape, dim, start, step, size), "slice")

    @classmethod
    def select(cls, operand: Value, dim: int, index: sympy.Expr) -> Value:
        """Place ``index`` of ``dim``, without that dimension."""
        return cls.view(operand, maps.select(operand.shape, dim, index), "select")

    @staticmethod
    def concat(operands: tuple[Value, ...], dim: int, shape: Shape, dtype: torch.dtype) -> Value:
        """One after the other along ``dim``; ``shape``: of the result."""
        return Value(Concat(operands, dim), shape, dtype)

    @staticmethod
    def gather(table: Value, index: Value, dim: int, kind: str, shape: Shape, name: str = "") -> Value:
        """``table`` by the values of ``index`` along ``dim``; ``kind``: as in ``Gather``. The dtype is the table's."""
        return Value(Gather(table, index, dim, kind), shape, table.dtype, name)

    @staticmethod
    def iota(shape: Shape, dim: int, dtype: torch.dtype = torch.int32, name: str = "") -> Value:
        """Each element's place along ``dim``."""
        return Value(Iota(dim), shape, dtype, name)

    @staticmethod
    def contract(left: Value, right: Value, left_axes: str, right_axes: str, axes: str, dtype: torch.dtype) -> Value:
        """The sum of products over the axes that the result lacks, see ``Contract``."""
        op = Contract(left, right, left_axes, right_axes, axes)
        return Value(op, tuple(op.size(letter) for letter in axes), dtype, "product")

    @classmethod
    def convolve(
        cls, left: Value, right: Value, left_axes: str, right_axes: str, axes: str, dtype: torch.dtype
    ) -> Value:
        """As ``contract``, of a weight and windows."""
        value = cls.contract(left, right, left_axes, right_axes, axes, dtype)
        assert isinstance(value.op, Contract)
        value.op.convolves = True
        return value

    @classmethod
    def matmul(cls, left: Value, right: Value, dtype: torch.dtype) -> Value:
        """``left`` [..., M, K] times ``right`` [..., K, N] with broadcast leading dimensions."""
        letters = "abcdefgh"[: max(len(left.shape), len(right.shape)) - 2]
        of_left, of_right = (letters[len(letters) - len(v.shape) + 2 :] for v in (left, right))
        return cls.contract(left, right, f"{of_left}mk", f"{of_right}kn", f"{letters}mn", dtype)

    @staticmethod
    def scan(kind: str, operand: Value, dim: int, dtype: torch.dtype) -> Value:
        """What the elements up to each along ``dim`` come to, as many as there are."""
        return Value(Scan(kind, operand, (dim,)), operand.shape, dtype)

    @classmethod
    def mean(cls, operand: Value, dims: tuple[int, ...], name: str = "mean") -> Value:
        """Sum over ``dims`` divided by their size; a static size is a literal, a dynamic one a host scalar."""
        count = numel(tuple(operand.shape[d] for d in dims))
        total = cls.reduce(
            "sum", cls.cast(operand, torch.float32) if not operand.dtype.is_floating_point else operand, dims
        )
        return cls.pointwise("div", total, size_operand(count), name=name, meaning=("mean", (operand, dims)))


def size_operand(size: sympy.Expr) -> Scalar:
    """A size as an arithmetic operand."""
    return Scalar(size, is_float=False)


def number_or_size(size: sympy.Expr) -> int | Scalar:
    """A size as an arithmetic operand: a number where it is known."""
    return int(size) if size.is_Integer else size_operand(size)


def normalise(dim: int, rank: int) -> int:
    """``dim`` counted from the front. A number counts as a tensor of one dim, as it does for torch."""
    return dim + max(rank, 1) if dim < 0 else dim


def dims_of(dims: Any, rank: int) -> tuple[int, ...]:
    """Reduction dims as non-negative, sorted; None or an empty list means all."""
    if dims is None or (isinstance(dims, list | tuple) and not dims):
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = [dims]
    if rank == 0:
        return ()
    return tuple(sorted(normalise(d, rank) for d in dims))
