"""Inputs to try: sizes from the dynamic dimensions, values from several distributions, several memory layouts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation.trees import filled

#: an operator that stops the whole CUDA context when its input leaves [0, 1]
_UNIT_INTERVAL_OPS = ("aten.binary_cross_entropy",)


@dataclass
class Leaf:
    """One tensor of the example inputs; ``symbols[i]`` is the expression of dimension i, or None where it is fixed."""

    name: str
    example: torch.Tensor
    symbols: list[str | None]
    low: int = 0  # least and greatest value of an integer input
    high: int = 0


@dataclass
class Inputs:
    """Makes trees of (args, kwargs) like the example's, at other sizes and with other values."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Leaf]
    ranges: dict[str, list[int]]
    ops: dict[str, int]
    device: torch.device
    example_sizes: dict[str, int] = field(default_factory=dict)
    again: Callable[[int], tuple[Any, Any]] | None = None  # the user's own function under another seed
    defaults: dict[str, Any] = field(default_factory=dict)  # parameters of forward that the example leaves out
    positional: list[str] = field(default_factory=list)  # the names of forward's positional parameters
    computes_indices: bool = False  # as class_schema.Specimen has it
    ignored: int | None = None  # a target that the module's loss takes no notice of

    def renewed(self, seed: int) -> Inputs:
        """The same with the values that the user's function gives under ``seed``; itself where their shapes differ."""
        assert self.again is not None
        tensors = [t for t in pytree.tree_leaves(self.again(seed)) if isinstance(t, torch.Tensor)]
        if [t.shape for t in tensors] != [leaf.example.shape for leaf in self.leaves]:
            return self
        leaves = [replace(leaf, example=t) for leaf, t in zip(self.leaves, tensors, strict=True)]
        return replace(self, leaves=leaves)

    @property
    def has_integers(self) -> bool:
        """Whether an input may be an index: integers, not booleans."""
        return any(is_integer(leaf.example.dtype) for leaf in self.leaves)

    @property
    def has_floats(self) -> bool:
        """Whether a tensor among the inputs is of floating point, or complex."""
        return any(leaf.example.dtype.is_floating_point or leaf.example.dtype.is_complex for leaf in self.leaves)

    def has_op(self, *words: str) -> bool:
        """Whether a name of an operator, between its underscores and dots, is one of ``words``."""
        return any(set(re.split(r"[._]", op)) & set(words) or op.rpartition(".")[2] in words for op in self.ops)

    @property
    def unit_interval(self) -> bool:
        """Whether inputs have to lie in [0, 1], as random ones then do."""
        return any(op in self.ops for op in _UNIT_INTERVAL_OPS)

    @property
    def names(self) -> list[str]:
        """What messages call each tensor, in the order of the leaves."""
        return [f"input {leaf.name}" for leaf in self.leaves]

    def example(self, sizes: dict[str, int]) -> tuple[Any, Any]:
        """The example, cut down to ``sizes`` (which must not exceed it): what has structure keeps it."""
        return self._tree([self._laid_out(self._cut(leaf, sizes), leaf) for leaf in self.leaves])

    def fill(self, sizes: dict[str, int]) -> None:
        """Give the part of the example that ``example(sizes)`` takes values from 0 to 1, and zeros to what is no float."""
        for leaf in self.leaves:
            part = leaf.example
            for dim, size in enumerate(self.shape(leaf, sizes)):
                part = part.narrow(dim, 0, min(size, part.shape[dim]))
            if part.dtype.is_floating_point:
                part.copy_(torch.rand(part.shape, generator=torch.Generator().manual_seed(0)))

    def sample(self, sizes: dict[str, int], distribution: str, seed: int) -> tuple[Any, Any]:
        """Random values at ``sizes``."""
        generator = torch.Generator(self.device).manual_seed(seed)
        return self._tree(
            [self._laid_out(self._draw(leaf, sizes, distribution, generator), leaf) for leaf in self.leaves]
        )

    def shaped(self, sizes: dict[str, int]) -> tuple[Any, Any]:
        """Tensors without memory, of the shapes, dtypes and memory order that inputs of ``sizes`` have."""
        return self._tree(
            [
                self._laid_out(torch.empty(self.shape(leaf, sizes), dtype=leaf.example.dtype, device="meta"), leaf)
                for leaf in self.leaves
            ]
        )

    def ends(self, sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
        """Random floats; integers at the ends of what the example holds, at 0, and where a loss ignores them."""
        generator = torch.Generator(self.device).manual_seed(seed)
        return self._tree(
            [
                self._laid_out(
                    self._ends(leaf, sizes, generator)
                    if is_integer(leaf.example.dtype)
                    else self._draw(leaf, sizes, "normal", generator),
                    leaf,
                )
                for leaf in self.leaves
            ]
        )

    def _ends(self, leaf: Leaf, sizes: dict[str, int], generator: torch.Generator) -> torch.Tensor:
        ends = torch.tensor([min(0, leaf.low), leaf.high], dtype=leaf.example.dtype, device=self.device)
        at = torch.randint(0, 2, self.shape(leaf, sizes), generator=generator, device=self.device)
        values = self.bounded(ends[at], leaf, sizes)
        if self.ignored is not None and leaf.example.dtype.itemsize >= 4 and values.numel() > 1:
            values.view(-1)[::3] = self.ignored
        return values

    def negative(self, sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
        """Random values with a -1 in each integer input, which counts from the end where torch takes it at all."""
        tree = self.sample(sizes, "normal", seed)
        for tensor in pytree.tree_leaves(tree):
            if isinstance(tensor, torch.Tensor) and is_integer(tensor.dtype) and tensor.numel():
                tensor[(0,) * tensor.dim()] = -1
        return tree

    def settings(self) -> list[tuple[str, Inputs]]:
        """For each number and flag that forward is given, or has a default for: the inputs with another one."""
        found: list[tuple[str, Inputs]] = []
        for i, value in enumerate(self.args):
            if (other := _another(value)) is not None:
                name = self.positional[i] if i < len(self.positional) else f"args[{i}]"
                args = (*self.args[:i], other, *self.args[i + 1 :])
                found.append((f"{name} = {other!r}", replace(self, args=args)))
        for name, value in {**self.defaults, **self.kwargs}.items():
            if (other := _another(value)) is not None:
                found.append((f"{name} = {other!r}", replace(self, kwargs={**self.kwargs, name: other})))
        return found

    def large_integers(self, sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
        """Random values, integers of 32 and 64 bits so large that a sum of a few needs 64."""
        tree = self.sample(sizes, "normal", seed)
        for tensor in pytree.tree_leaves(tree):
            if (
                isinstance(tensor, torch.Tensor)
                and tensor.dtype in (torch.int32, torch.int64)
                and 0 not in tensor.stride()
            ):
                tensor += 1 << 30
        return tree

    def fix(self, symbols: set[str]) -> None:
        """Leave dimensions as long as the example's, whatever sizes are asked for."""
        for leaf in self.leaves:
            leaf.symbols = [None if s is not None and _named(s) & symbols else s for s in leaf.symbols]
        left = {s for leaf in self.leaves for e in leaf.symbols if e is not None for s in _named(e)}
        self.example_sizes = {s: n for s, n in self.example_sizes.items() if s in left}

    def relaid(self, tree: tuple[Any, Any], layout: str) -> tuple[Any, Any]:
        """The same values in another memory layout.

        "expanded": the first of a dimension for all of it. "transposed": the last two dimensions exchanged; "padded": rows further apart than they are long; "sliced":
        every other element of a row.
        """
        return pytree.tree_map(lambda t: _relay(t, layout) if isinstance(t, torch.Tensor) else t, tree)

    def _tree(self, tensors: list[torch.Tensor]) -> tuple[Any, Any]:
        made: tuple[Any, Any] = filled((self.args, self.kwargs), tensors)
        return made

    def shape(self, leaf: Leaf, sizes: dict[str, int]) -> list[int]:
        """A leaf's shape where the named sizes are ``sizes``; dimensions without a symbol as in the example."""
        return [n if s is None else evaluate(s, sizes) for n, s in zip(leaf.example.shape, leaf.symbols, strict=True)]

    def elements(self, sizes: dict[str, int]) -> int:
        """Elements of the largest input."""
        return max((torch.Size(self.shape(leaf, sizes)).numel() for leaf in self.leaves), default=0)

    def _cut(self, leaf: Leaf, sizes: dict[str, int]) -> torch.Tensor:
        cut = leaf.example
        for dim, size in enumerate(self.shape(leaf, sizes)):
            cut = cut.narrow(dim, 0, min(size, cut.shape[dim]))
        if not cut.dtype.is_floating_point and not cut.dtype.is_complex and cut.dtype is not torch.bool:
            cut = self.bounded(cut, leaf, sizes)
        return cut.to(self.device)

    def bounded(self, values: torch.Tensor, leaf: Leaf, sizes: dict[str, int]) -> torch.Tensor:
        """Integers that may index a dimension that was cut stay within it; negative ones are special and stay."""
        bounds = [n for s, n in sizes.items() if self.example_sizes.get(s, 0) > leaf.high >= n]
        return torch.where(values >= 0, values % max(1, min(bounds)), values) if bounds else values

    def _draw(self, leaf: Leaf, sizes: dict[str, int], distribution: str, generator: torch.Generator) -> torch.Tensor:
        shape, dtype = self.shape(leaf, sizes), leaf.example.dtype
        if dtype.is_floating_point or dtype.is_complex:
            drawn = floats(shape, distribution, generator, torch.complex64 if dtype.is_complex else torch.float32)
            if distribution == "huge":
                drawn *= 1e12 if dtype.itemsize > 2 or dtype is torch.bfloat16 else 1e3 if dtype.itemsize == 2 else 10
            if distribution == "minute" and (dtype.itemsize > 2 or dtype is torch.bfloat16):
                drawn *= 1e-5  # below any constant that a kernel may take for zero; of float16 nothing would be left
            if self.unit_interval:
                drawn = drawn.sigmoid()
            return drawn.to(dtype)
        if leaf.example.numel() == 0:
            return torch.zeros(shape, dtype=dtype, device=self.device)
        if leaf.low == leaf.high and (dtype is torch.bool or leaf.high == 1):  # a mask, all of it on or off
            mask = torch.rand(shape, generator=generator, device=self.device) < 0.5
            if mask.dim() and mask.shape[-1] > 1:  # of each row some are on and some are off
                mask[..., 0], mask[..., 1] = True, False
            return mask.to(dtype)
        # Integers and booleans come from those observed: what else is allowed, the module does not say.
        count = torch.Size(shape).numel()
        at = torch.randint(0, leaf.example.numel(), (count,), generator=generator, device=self.device)
        values = leaf.example.reshape(-1)[at.to(leaf.example.device)].reshape(shape)
        if dtype is not torch.bool:
            values = self.bounded(values, leaf, sizes)
        return values.to(self.device)

    def _laid_out(self, tensor: torch.Tensor, leaf: Leaf) -> torch.Tensor:
        """In the memory order of the example: permuted or expanded as it was."""
        strides = leaf.example.stride()
        for dim, stride in enumerate(strides):
            if stride == 0 and leaf.example.shape[dim] > 1 and tensor.shape[dim] > 0:
                tensor = tensor.narrow(dim, 0, 1).expand(tensor.shape)
        if 0 in strides or tensor.dim() < 2:
            return tensor.contiguous() if 0 not in strides else tensor
        order = sorted(range(tensor.dim()), key=lambda d: (-strides[d], d))
        back = sorted(range(tensor.dim()), key=lambda d: order[d])
        return tensor.permute(order).contiguous().permute(back)


def floats(shape: list[int], distribution: str, generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """Random numbers of a distribution, float32 or complex64, on the generator's device."""
    normal = torch.randn(shape, generator=generator, device=generator.device, dtype=dtype)
    if distribution == "uniform":
        return normal.erf() + 1.5 if not dtype.is_complex else normal + 1.5
    if distribution == "heavy-tailed":
        return normal * torch.exp(1.5 * torch.randn(shape, generator=generator, device=generator.device))
    if distribution == "large":
        return normal * 100
    if distribution == "halves":
        return _halves(normal * 8)
    if distribution == "offset":
        return normal + 1000
    if distribution in ("tiny", "minute"):
        return normal * 1e-3
    if distribution == "cancelling" and normal.dim():
        pairs = normal[..., : normal.shape[-1] // 2]
        normal[..., normal.shape[-1] // 2 : 2 * pairs.shape[-1]] = -pairs * (1 + 1e-4)
        return normal
    if distribution in ("nan", "infinite"):
        return _with_specials(normal, distribution, generator)
    if distribution == "sparse" and normal.dim():
        # Whole and half numbers, and zeros of both signs: what lies exactly at a bound.
        zeros = torch.zeros_like(normal) if normal.is_complex() else torch.copysign(torch.zeros_like(normal), normal)
        there = torch.rand(shape, generator=generator, device=generator.device) < 0.5
        sparse = torch.where(there, _halves(normal * 4), zeros)
        if sparse.shape[0] > 1:
            sparse[0] = 0
            sparse[-1] = 1.5
        return sparse
    return normal


def _halves(numbers: torch.Tensor) -> torch.Tensor:
    """Rounded to whole numbers, complex ones in both parts, and divided by two."""
    if numbers.is_complex():
        return torch.view_as_complex(torch.view_as_real(numbers).round()) / 2
    return numbers.round() / 2


def _with_specials(normal: torch.Tensor, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """A few NaN, or infinities of both signs, in the first half of the rows; then also a last row of -inf alone."""
    if not normal.numel():
        return normal
    if not normal.dim():
        return normal * float(distribution.removesuffix("inite"))
    half = normal[: max(1, normal.shape[0] // 2)].reshape(-1)
    count = min(6, 1 + half.numel() // 50)
    at = torch.randint(0, half.numel(), (count,), generator=generator, device=normal.device)
    values = [float("nan")] if distribution == "nan" else [float("inf"), -float("inf")]
    half = half.clone()
    specials = torch.tensor([values[i % len(values)] for i in range(count)], device=normal.device)
    if normal.is_complex():  # in one part or in the other
        ordinary, odd = torch.zeros_like(specials), torch.arange(count, device=normal.device) % 2 == 1
        specials = torch.complex(torch.where(odd, ordinary, specials), torch.where(odd, specials, ordinary))
    half[at] = specials.to(normal.dtype)
    normal[: max(1, normal.shape[0] // 2)] = half.reshape(normal[: max(1, normal.shape[0] // 2)].shape)
    if distribution == "infinite" and normal.dim() > 1 and normal.shape[0] > 2:
        normal[-1] = -float("inf")
    return normal


def _another(value: Any) -> Any:
    """Another number or flag than ``value``; None for what is neither."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 1.5 + 0.25 if isinstance(value, float) else None


def is_integer(dtype: torch.dtype) -> bool:
    """Whether its numbers may be indices: not those of booleans."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def _relay(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if tensor.numel() == 0 or 0 in tensor.stride():
        return tensor
    if layout == "expanded" and tensor.dim() >= 2:
        return tensor[:1].expand(tensor.shape)
    if layout == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "padded" and tensor.dim() >= 1:
        rows = torch.zeros(*tensor.shape[:-1], tensor.shape[-1] + 3, dtype=tensor.dtype, device=tensor.device)
        rows[..., : tensor.shape[-1]] = tensor
        return rows[..., : tensor.shape[-1]]
    if layout == "sliced" and tensor.dim() >= 1:
        wide = torch.zeros(*tensor.shape[:-1], tensor.shape[-1] * 2, dtype=tensor.dtype, device=tensor.device)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    return tensor


def _named(expression: str) -> set[str]:
    """The symbols of an expression."""
    return set(re.findall(r"[A-Za-z_]\w*", expression))


def evaluate(expression: str, sizes: dict[str, int]) -> int:
    """A dimension's size: a symbol, or an expression of symbols such as ``2*x_0``."""
    if expression in sizes:
        return sizes[expression]
    import sympy

    return int(sympy.sympify(expression, {name: sympy.Symbol(name) for name in sizes}).subs(sizes))


def from_example(
    args: tuple[Any, ...], kwargs: dict[str, Any], specimen: dict[str, Any], device: torch.device, names: list[str]
) -> Inputs:
    """``specimen`` is class_schema.Specimen as JSON; its inputs are in the order of the flattened example."""
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    known = [s.get("dynamic") or [] for s in specimen.get("inputs", [])]
    leaves = []
    for i, tensor in enumerate(tensors):
        symbols = known[i] if i < len(known) and len(known[i]) == tensor.dim() else [None] * tensor.dim()
        leaf = Leaf(names[i], tensor.detach(), list(symbols))
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex) and tensor.numel():
            leaf.low, leaf.high = int(tensor.min()), int(tensor.max())
        leaves.append(leaf)
    if not specimen.get("ops") and not specimen.get("pinned"):
        _guess_batch(leaves)
    inputs = Inputs(args, kwargs, leaves, specimen.get("dynamic", {}), specimen.get("ops", {}), device)
    inputs.computes_indices = bool(specimen.get("computes_indices"))
    for leaf in leaves:
        for n, s in zip(leaf.example.shape, leaf.symbols, strict=True):
            if s is not None and s.isidentifier():
                inputs.example_sizes[s] = int(n)
    # A symbol that is seen in expressions alone cannot be solved for here: its dimensions stay as they are.
    for leaf in leaves:
        leaf.symbols = [s if s and _solvable(s, inputs.example_sizes) else None for s in leaf.symbols]
    return inputs


def _solvable(expression: str, sizes: dict[str, int]) -> bool:
    try:
        evaluate(expression, sizes)
        return True
    except (TypeError, ValueError, SyntaxError, AttributeError):
        return False


def _guess_batch(leaves: list[Leaf]) -> None:
    """Without a graph: a first dimension that all inputs share is taken for a batch; eager has to accept it anyway."""
    if leaves and all(leaf.example.dim() for leaf in leaves):
        sizes = {leaf.example.shape[0] for leaf in leaves}
        if len(sizes) == 1 and sizes.pop() > 1:
            for leaf in leaves:
                leaf.symbols[0] = "batch"
