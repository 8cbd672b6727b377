"""What a masked load gives where its mask is off and no ``other`` is said: undefined on a GPU, zeros in Triton's interpreter.

A kernel that goes on with these zeros (a sum over a row's padding) is right there and wrong on a GPU. So they are NaN here, and for integers
the largest number but for its last bits. What never reaches a result does no harm.

Loads of a single element are left as they are: of these the interpreter takes an ``other`` of zero for none.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def poison_masked_lanes(interpreter: Any) -> None:
    """Fill what loads leave undefined; after the repairs of number formats, which load in ways of their own."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    original = builder.create_masked_load

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **kwargs: Any) -> Any:
        on = mask.data if isinstance(mask, handle) else np.asarray(mask)  # of a block pointer it is an array
        if other is None and ptrs.data.size > 1 and not on.all():
            kind = ptrs.get_element_ty()
            other = handle(_poison(np.shape(ptrs.data), interpreter._get_np_dtype(kind), kind), kind)
        return original(self, ptrs, mask, other, *rest, **kwargs)

    builder.create_masked_load = load


def _poison(shape: tuple[int, ...], dtype: Any, kind: Any) -> np.ndarray:
    """Elements of ``dtype``, which numpy keeps a Triton ``kind`` in."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if kind.is_floating():  # float8 by its bits: NaN in all formats but one, where it is large
        return np.full(shape, 0x7F, dtype)
    return np.full(shape, np.iinfo(dtype).max - 0x2C, dtype)
