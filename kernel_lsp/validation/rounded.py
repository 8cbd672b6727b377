"""Which tensors of a call hold rounded numbers: those that an operator computed, and what was made of them.

Operators that choose, move, compare or fill numbers round none. Any other is taken to round where it computes floating point numbers, or
computes anything from such.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

# Operators that copy, choose, bound or compare the numbers they were given, or make constants. Those that work in place go without
# their underscore.
_COPIED = ("clone", "cat", "stack", "flip", "roll", "repeat", "constant_pad_nd", "tril", "triu", "lift_fresh_copy")
_TAKEN = ("gather", "index", "index_select", "take", "embedding", "select_scatter", "slice_scatter")
_MASKED = ("where", "masked_fill", "masked_scatter", "masked_select", "index_fill", "fill", "zero")
_CHOSEN = ("max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "sort", "topk", "cummax", "cummin")
_POOLED = ("max_pool2d_with_indices", "max_pool3d_with_indices")
_BOUNDED = ("maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max", "relu", "abs", "neg", "sign")
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit", "logical_not")
_MADE = ("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones", "new_full")
_EXACT = frozenset((*_COPIED, *_TAKEN, *_MASKED, *_CHOSEN, *_POOLED, *_BOUNDED, *_COMPARED, *_MADE))


class Rounded:
    """The memory that rounded numbers were written to, while the operators of a call are shown to it one by one."""

    def __init__(self) -> None:
        self._places: set[int] = set()

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return _place(tensor) in self._places

    def note(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Take a call of an operator into account. ``out``: its result; a view of what it was given is no new memory."""
        given = _tensors((args, kwargs))
        before = {_place(t) for t in given}
        made = {_place(t) for t in _tensors(out)} - before
        rounds = any(t in self for t in given) or not _exact(func, args, given, _tensors(out))
        if not rounds:
            self._places -= made  # memory that was freed may have been given out again
            return
        names = [a.name for a in func._schema.arguments]
        named = dict(zip(names, args, strict=False)) | kwargs
        written = [named.get(a.name) for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
        self._places |= made | {_place(t) for t in _tensors(written)}


def _exact(func: Any, args: Any, given: list[torch.Tensor], out: list[torch.Tensor]) -> bool:
    name = str(func).split(".")[1].removesuffix("_")
    if name in ("_to_copy", "copy"):
        source, target = (args[1], args[0]) if name == "copy" else (args[0], out[0])
        return target.dtype is source.dtype or (
            source.dtype.is_floating_point and torch.promote_types(source.dtype, target.dtype) is target.dtype
        )
    return name in _EXACT or not given or not any(t.dtype.is_floating_point for t in (*given, *out))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
