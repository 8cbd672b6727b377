"""The graph between the exported ATen graph and the kernels: few kinds of node, every shape symbolic.

A ``Value`` is one tensor. Its ``op`` says how each element follows from others; an element is addressed by one
index per dimension. Shapes are tuples of sympy expressions over torch.export's size symbols (plain integers for
static dimensions), dtypes are torch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
import torch

if TYPE_CHECKING:
    from .map import Map

Shape = tuple[sympy.Expr, ...]

#: torch's views of complex tensors as pairs of real numbers, and the reverse
AS_REAL, AS_COMPLEX = "torch.view_as_real", "torch.view_as_complex"


@dataclass(eq=False)
class Value:
    """One tensor of the graph. ``label`` is how it is called in a formula, ``meaning`` the operation it completes."""

    op: Op
    shape: Shape
    dtype: torch.dtype
    name: str = ""  # a name for a variable that holds it; empty: derive one from op
    meaning: tuple[str, tuple[Any, ...]] | None = None  # ("softmax", (x,)): printed in formulas instead of its parts
    node: str = ""  # the exported node it comes from
    module: str = ""  # the submodule whose result it is: "q_proj"
    convolved: Convolution | None = None  # the convolution that it is the result of
    averaged: Average | None = None  # the average pooling that it is the result of


@dataclass(frozen=True)
class Convolution:
    """What a value is the result of: ``x`` [N, C, *spatial], ``weight`` [O, C, *sizes], transposed [C, O, *sizes], and ``bias`` [O]."""

    x: Value
    weight: Value
    bias: Value | None
    stride: Shape
    padding: Shape
    dilation: Shape
    transposed: bool = False


@dataclass(frozen=True)
class Average:
    """What a value is the result of: the mean over windows of ``sizes``, ``step`` apart, of the last dimensions of ``x``. None leaves ``x``."""

    x: Value
    sizes: Shape
    step: Shape


@dataclass(eq=False)
class Op:
    """How a value is computed; the operations below derive from it."""


@dataclass(eq=False)
class Input(Op):
    """A tensor that the module is given or holds: ``source`` is Python for it inside ``forward``."""

    source: str
    kind: str  # "argument", "parameter", "buffer", "attribute" (a plain tensor that forward assigns) or "constant"
    contiguous: bool = False  # parameters and buffers that were contiguous when exported


@dataclass(eq=False)
class Pointwise(Op):
    """Elementwise ``function`` (a key of ``functions.FUNCTIONS``); operands broadcast from the right."""

    function: str
    operands: tuple[Any, ...]  # Value, Scalar or a Python number


@dataclass(eq=False)
class Scalar:
    """A number known at launch: a sympy expression over sizes, computed on the host."""

    expr: sympy.Expr
    is_float: bool


@dataclass(eq=False)
class View(Op):
    """Another way to address ``operand``: where each element is, ``map`` says; ``name`` is for text alone."""

    map: Map
    operand: Value
    name: str


@dataclass(eq=False)
class Fold(Op):
    """``kind`` of ``operand`` over ``dims``, element after element."""

    kind: str
    operand: Value
    dims: tuple[int, ...]


@dataclass(eq=False)
class Reduce(Fold):
    """What the elements over ``dims`` come to (``kind``: a key of ``monoids.MONOIDS``); those dimensions keep size 1.

    ``part``: which of what the monoid carries, where that is asked for and not its result.
    """

    part: str = ""


@dataclass(eq=False)
class Scan(Fold):
    """What the elements up to each come to (``kind``: a key of ``monoids.MONOIDS``), along the one dimension in ``dims``.

    ``start``: where the scan runs in chunks, what it has come to at the end of each: shape [chunks, *operand], with size 1
    along the dimension.
    """

    start: Value | None = None


@dataclass(eq=False)
class Partial(Op):
    """What each chunk of a long reduction gives: shape [chunks, *result]; ``kind``, ``operand``, ``dims``, ``part`` as in Reduce.

    ``length``: of how many elements a chunk is.
    """

    kind: str
    operand: Value
    dims: tuple[int, ...]
    length: int
    part: str = ""


@dataclass(eq=False)
class Concat(Op):
    """``operands`` one after the other along ``dim``; their other sizes are equal."""

    operands: tuple[Value, ...]
    dim: int


@dataclass(eq=False)
class Gather(Op):
    """``table`` with dimension ``dim`` addressed by the values of ``index``.

    ``index`` has the result's shape (``take``), or replaces dimension ``dim`` by its own dimensions (``rows``).
    """

    table: Value
    index: Value
    dim: int
    kind: str  # "take" or "rows"


@dataclass(eq=False)
class Iota(Op):
    """The index along dimension ``dim``, times ``step`` plus ``start``."""

    dim: int
    start: sympy.Expr = sympy.S.Zero
    step: sympy.Expr = sympy.S.One


#: Letters of a convolution's result and window (``Build.convolve``): a pixel's place, the phase of a transposed one's, a tap's place.
PLACES, PHASES, TAPS = "tuv", "xyz", "ijk"


@dataclass(eq=False)
class Contract(Op):
    """The sum of products of ``left`` and ``right``, as einsum writes it: a letter names an axis.

    Letters that ``axes`` (the result's) lacks are summed; they stand on both sides. One of size one on one side is broadcast.
    Matrix products, einsum and convolutions are this over other operands.
    """

    left: Value
    right: Value
    left_axes: str
    right_axes: str
    axes: str
    outer: str = ""  # summed letters that a kernel goes through one by one, outside of the others
    convolves: bool = False  # it is a convolution, which torch may compute in TF32
    tf32: bool = False  # float32 operands are rounded to TF32
    #: for that, of which operand the tiles are rounded to the nearest; of the others a tensor core cuts bits off
    nearest: tuple[bool, bool] = (False, False)
    scaled: float = 1.0  # what the sum over all places but the last of the first outer letter is multiplied by
    #: outer letters that have fewer places for some of the results, with how many: an expression over the result's ``map.dim(i)``;
    #: what the operands hold beyond does not count
    lengths: tuple[tuple[str, sympy.Expr], ...] = ()
    exact: Exact | None = None
    raised: bool = False  # of planes: the right operand's high plane is stored times what its low one is, so that all products are added up alike
    #: of planes: after how many elements the tensor cores' sum begins at zero again, for less error; 0: where that is the fastest
    begins_again: int = 0
    short_sums: bool = False  # of float8: tensor cores may add up in the fewer bits that they have for it
    full_sums: bool = False  # of half precision operands: the sum has to have float32's error
    convolution: Contract | None = None  # that it is, over the same elements in another order

    @property
    def written(self) -> Contract:
        """The product as the module has it, before its operands were rounded or laid out anew."""
        return self.exact.product if self.exact is not None else self.convolution or self

    @property
    def summed(self) -> str:
        """The letters that are summed over, in the left operand's order."""
        return "".join(letter for letter in self.left_axes if letter not in self.axes)

    @property
    def planes(self) -> str:
        """The outer letter that goes through products of planes, which are not all scaled alike; empty where there is none."""
        return self.outer[:1] if self.scaled != 1.0 else ""

    @property
    def scalar(self) -> str:
        """The letters whose index is a scalar in a kernel: those of a batch, and the outer ones."""
        return self.outer + "".join(letter for letter in self.axes if self.varies(letter) == (True, True))

    def size(self, letter: str) -> sympy.Expr:
        """The extent of an axis, without what is broadcast."""
        sizes = [
            operand.shape[axes.index(letter)]
            for operand, axes in ((self.left, self.left_axes), (self.right, self.right_axes))
            if letter in axes
        ]
        return next((n for n in sizes if n != 1), sympy.Integer(1))

    def varies(self, letter: str) -> tuple[bool, bool]:
        """Whether the left and the right operand vary along an axis."""
        left, right = (
            letter in axes and operand.shape[axes.index(letter)] != 1
            for operand, axes in ((self.left, self.left_axes), (self.right, self.right_axes))
        )
        return left, right


@dataclass(eq=False)
class Held(Op):
    """In the body of a ``Recurrence``: a state as the step before left it."""


@dataclass(eq=False)
class Below(Op):
    """In the body of a ``Recurrence`` of layers: what this step made of the first state in the layer below."""


@dataclass(eq=False)
class Given(Op):
    """In the body of a ``Recurrence``: what it is given, whole; or of dimension ``along`` only the place of the step."""

    along: int | None = None


@dataclass(eq=False)
class Recurrence(Op):
    """What the results of a recurrence share: how each step makes the states of those that the step before left.

    The body is a graph of its own: ``held`` and ``parts`` (of ``Held`` and ``Given``) stand for what comes from outside, each for
    what has its place in ``first`` (the states before the first step) and ``given``. ``next`` are the states after a step, all of one shape.
    Where a ``Contract`` is in it, its left operand is a state, or ``below``, and its right one is given whole.

    ``members``: so many recurrences of one body at once; all of ``first`` and ``given`` then have a first dimension of that size, which
    the body does not know. With ``below`` each is a layer, and needs what the one before it made in the same step (the lowest: its products with it are 0).
    ``bounded``: no number of its first state is beyond -1 and 1 after a step, nor beyond what it was before the first.
    """

    name: str  # what a formula calls it
    steps: sympy.Expr
    backward: bool  # from the last place of what is given to the first
    held: tuple[Value, ...]
    parts: tuple[Value, ...]
    next: tuple[Value, ...]
    first: tuple[Value, ...]
    given: tuple[Value, ...]
    members: int | None = None
    below: Value | None = None
    bounded: bool = False


@dataclass(eq=False)
class Recur(Op):
    """State number ``state`` of a recurrence: after the last step, or (``each``) before the first and after each of its steps.

    Then the shape is [steps + 1, *state], in the order of what is given: a recurrence that goes backward begins at the last place.
    Of several members the first dimension tells them apart. ``along``: before which dimension of the state the steps lie. Without
    ``begun`` it is [steps, *state]: after each step alone.
    """

    loop: Recurrence
    state: int
    each: bool
    along: int = 0
    begun: bool = True


@dataclass(eq=False)
class Exact:
    """What a product of rounded operands stands for.

    That is ``product`` where the largest magnitude of one, in ``peaks``, is not between ``least`` and ``most``, or where one of the
    sizes ``sides`` is below ``least_side``. ``tf32``: what is rounded keeps ten bits, as torch's convolutions do where they may.
    ``most_of_last``: what the last peak may be, where that is less.
    """

    product: Contract
    peaks: tuple[Value, ...]
    least: float
    most: float
    tf32: bool = False
    sides: tuple[sympy.Expr, ...] = ()
    least_side: int = 0
    most_of_last: float | None = None

    def most_of(self, peak: Value) -> float:
        """What ``peak`` may be."""
        return self.most_of_last if self.most_of_last is not None and peak is self.peaks[-1] else self.most


@dataclass(eq=False)
class Peak(Op):
    """The largest magnitude in ``operand``, without NaN: shape [1], float32. The kernel that stores ``rounded`` computes it."""

    operand: Value
    rounded: Value


@dataclass(eq=False)
class Sample(Op):
    """A magnitude that some element of ``operand`` has, a product's operand before it is rounded; infinite where a sum is not finite.

    Shape [1], float32. The kernel of the product computes it. A sum is not finite where an element was rounded to infinity. So it lies between the same bounds as the largest magnitude, or below them where the elements that were looked at are small.
    """

    operand: Value


@dataclass(eq=False)
class TorchCall(Op):
    """What stays a call of torch: ``target`` as Python, arguments as Values, Scalars or literals."""

    target: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: int | None = None  # which of several results, None where there is one
    call: TorchCall | None = None  # the call that ``output`` indexes
    order: tuple[int, ...] | None = None  # of torch's dimensions, as the value has them; None where they are the same

    @property
    def is_view(self) -> bool:
        """Whether it computes nothing: complex tensors as pairs of real numbers, or the reverse."""
        return self.target in (AS_REAL, AS_COMPLEX)


def input_of(value: Value) -> Input:
    """The operation of a value that is known to be an input."""
    assert isinstance(value.op, Input)
    return value.op


def operands(value: Value) -> list[Value]:
    """The values that ``value`` is computed from."""
    op = value.op
    if isinstance(op, Pointwise | Concat):
        return [v for v in op.operands if isinstance(v, Value)]
    if isinstance(op, Scan):
        return [op.operand] if op.start is None else [op.operand, op.start]
    if isinstance(op, View | Reduce | Partial | Sample):
        return [op.operand]
    if isinstance(op, Gather):
        return [op.table, op.index]
    if isinstance(op, Contract):
        exact = [op.exact.product.left, op.exact.product.right, *op.exact.peaks] if op.exact else []
        return [op.left, op.right, *exact]
    if isinstance(op, Recur):
        return [*op.loop.first, *op.loop.given]
    if isinstance(op, Peak):
        return [op.rounded]
    if isinstance(op, TorchCall):
        call = op.call or op
        return [v for v in _leaves((call.args, call.kwargs)) if isinstance(v, Value)]
    return []


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in _leaves(item)]
    if isinstance(tree, list | tuple):
        return [leaf for item in tree for leaf in _leaves(item)]
    return [tree]


def numel(shape: Shape) -> sympy.Expr:
    """The number of elements, 1 for the shape ()."""
    return sympy.prod(shape) if shape else sympy.Integer(1)


def viewed(value: Value) -> Value:
    """What a value is a view of, through all views; itself where it is none."""
    while isinstance(value.op, View):
        value = value.op.operand
    return value


def constant_of(value: Value) -> Any:
    """The number that all elements are; None where that is not known."""
    while isinstance(value.op, View) and not value.op.map.guard:
        value = value.op.operand
    return value.op.operands[0] if isinstance(value.op, Pointwise) and value.op.function == "constant" else None
