"""Conversions to float32 in a module that runs in float64: they become conversions to float64.

A forward that converts to float32 itself (``t.float()``, ``torch.arange(n, dtype=torch.float32)``: most embeddings of a timestep do) gives
products float32 beside weights in float64, which torch refuses. What is computed in float64 from there on is what the module
means, only more exactly: nothing is rounded that was not, and float32's numbers stay the numbers that they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class NotLiftable(Exception):
    """The forward looks at the bits of numbers, which are others in float64."""


class Lifted(TorchDispatchMode):
    """Within it operators that are asked for float32 give float64, and complex128 for complex64.

    Raises:
        NotLiftable: an operator takes the bits of floating point numbers for something else, or the other way round.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.view.dtype:
            raise NotLiftable(str(func))
        args, kwargs = pytree.tree_map(_wider, (args, kwargs or {}))
        out = func(*args, **kwargs)
        # What torch.tensor() makes of Python's numbers was made before, in float32.
        return out.to(_WIDE[out.dtype]) if func is torch.ops.aten.lift_fresh.default and out.dtype in _WIDE else out


def _wider(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value
