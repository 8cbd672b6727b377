"""Conditions on tensors: those that forward is given, and those that the module holds."""

from __future__ import annotations

from dataclasses import dataclass

import sympy
import torch

from kernel_lsp.naming import attribute

from .sizes import size_conditions

#: tensors of the module from which on their conditions are written once, with a table of the tensors
_MANY = 4


@dataclass(frozen=True)
class Tensor:
    """A tensor that a kernel reads.

    ``source``: its Python inside forward. ``shape``: free sizes are symbols. ``argument``: forward is given it; else the
    module holds it. ``like``: the tensor whose layout and strides the kernel may rely on; None where it takes any, or, if
    ``contiguous``, one without gaps.
    """

    source: str
    dtype: torch.dtype
    shape: tuple[sympy.Expr, ...]
    argument: bool
    like: torch.Tensor | None = None
    contiguous: bool = False

    @property
    def differentiable(self) -> bool:
        """Whether autograd may follow it."""
        return self.dtype.is_floating_point or self.dtype.is_complex


def tensor_conditions(
    tensor: Tensor,
    first: str,
    device: str,
    symbols: dict[sympy.Symbol, str],
    later: list[tuple[str, sympy.Expr]],
    *,
    bounded: bool = True,
) -> list[str]:
    """The conditions on one tensor. ``first``: the Python of the first tensor; ``device``: the name of its device, which all are on.

    ``symbols``, ``later`` and ``bounded`` are as in ``size_conditions``.
    """
    source = tensor.source
    result = [f"type({source}) in _PLAIN"]
    if source == first:  # Triton launches on the current device, whichever the tensors are on
        result.append(f"({device} := {source}.device).type == _DEVICE")
        result.append(f"({device}.index is None or {device}.index == torch.cuda.current_device())")
    else:
        result.append(f"{source}.device == {device}")
    result.append(f"{source}.dtype == {tensor.dtype}")
    result += _layout_conditions(tensor)
    result += size_conditions(source, tensor.shape, symbols, later, bounded=bounded)
    return [*result, f"{source}.is_contiguous()"] if tensor.contiguous else result


def alike(tensors: list[Tensor]) -> bool:
    """Whether they are enough for a table, and differ in nothing but their sizes: the module's own, without gaps, of one dtype."""
    fixed = all(
        not t.argument and t.contiguous and t.like is None and all(n.is_number for n in t.shape) for t in tensors
    )
    dtypes = {t.dtype for t in tensors}
    return len(tensors) >= _MANY and fixed and len(dtypes) == 1 and not tensors[0].dtype.is_complex


def table_conditions(tensors: list[Tensor], table: str, device: str) -> list[str]:
    """The conditions on tensors that are ``alike``: a table of them, named ``table``, and what holds of each, with their shapes."""
    sources = ", ".join(one.source for one in tensors)
    shapes = ", ".join(str(tuple(int(n) for n in one.shape)) for one in tensors)
    of_each = f"type(t) in _PLAIN and t.device == {device} and t.dtype == {tensors[0].dtype}"
    of_each += " and t.shape == shape and t.is_contiguous()"
    # A list is made faster than what a generator gives is taken one by one.
    return [f"({table} := ({sources}))", f"all([{of_each} for t, shape in zip({table}, ({shapes}))])"]


def _layout_conditions(tensor: Tensor) -> list[str]:
    """How the elements lie in memory. The bits for negative and conjugate say that memory holds other values."""
    source, like, result = tensor.source, tensor.like, []
    if like is not None and like.layout is not torch.strided:
        return [f"{source}.layout == {like.layout}"]
    if tensor.argument and tensor.dtype.is_floating_point:
        result.append(f"{source}.resolve_neg() is {source}")
    if not tensor.argument and tensor.dtype.is_complex:
        result.append(f"not {source}.is_conj()")
    if tensor.argument and tensor.dtype.is_complex:
        result.append(f"{source}.resolve_neg() is {source} and {source}.resolve_conj() is {source}")
    if like is not None:
        contiguous = like.is_contiguous()
        result.append(f"{source}.is_contiguous()" if contiguous else f"{source}.stride() == {like.stride()}")
    return result


def unregistered(module: torch.nn.Module, carried: frozenset[str] = frozenset()) -> list[str]:
    """Tensors that are neither parameters nor buffers, but for those of one element, which are settings, and those ``carried``."""
    result = []
    for path, child in module.named_modules():
        for name, value in vars(child).items():
            if isinstance(value, torch.Tensor) and value.numel() != 1 and value.layout is torch.strided:
                source = f"{attribute(path)}.{name}"
                if source in carried:
                    continue
                result += [f"{source}.dtype == {value.dtype}", f"{source}.shape == {tuple(value.shape)}"]
                result.append(f"{source}.stride() == {value.stride()}")
    return result


def looked_up_once(conditions: list[str], names: dict[str, str]) -> list[str]:
    """The conditions with a name for each parameter and buffer: nn.Module takes a microsecond to look one up."""
    for source, name in names.items():
        conditions = [c.replace(f"{source}.", f"{name}.") for c in conditions]
        first = conditions.index(f"type({source}) in _PLAIN")
        conditions[first] = f"type({name} := {source}) in _PLAIN"
    return conditions
