"""Products of float8 matrices with scales in float64, which ``torch._scaled_mm`` itself does not compute."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class ScaledProducts(TorchDispatchMode):
    """Within it ``torch._scaled_mm`` takes tensors of any floating dtype and gives float64.

    The result is not rounded to ``out_dtype``, as no result of a module in float64 is.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._scaled_mm.default:
            return _product(*args, **kwargs)
        return func(*args, **kwargs)


def _product(
    x: torch.Tensor,
    y: torch.Tensor,
    scale_x: torch.Tensor,
    scale_y: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """(x @ y) * scale_x * scale_y + bias in float64; x: [M, K], y: [K, N], scales of one number or [M, 1] and [1, N].

    Raises:
        NotImplementedError: for other scales, and for ``scale_result``, by which a CPU divides and a GPU multiplies.
    """
    if scale_result is not None:
        raise NotImplementedError("scale_result")
    result = x.double() @ y.double()
    for scale, of_each in ((scale_x, (x.shape[0], 1)), (scale_y, (1, y.shape[1]))):
        if scale.numel() != 1 and scale.shape != of_each:
            raise NotImplementedError("scales of blocks")
        result = result * (scale.double().reshape(()) if scale.numel() == 1 else scale.double())
    return result if bias is None else result + bias.double()
