"""What rounding the operands of products to TF32 does to an answer, and whether torch rounds them at all.

Where torch may take TF32, the library chooses for each shape: a convolution of the example's size may run in TF32 and a small
one with the same weights in float32. A kernel rounds at every size. So where torch rounds at the example, a kernel
may be off at any size by what this rounding does there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import compare

if TYPE_CHECKING:
    from kernel_lsp.validation.oracle import Oracle, Reference

_CONVOLUTIONS = ("aten.convolution", "aten.cudnn_convolution", "aten.cudnn_convolution_transpose")
_PRODUCTS = ("aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm")


class _Rounding(TorchDispatchMode):
    """Rounds the float64 operands of those products that torch's settings allow TF32 for."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = _CONVOLUTIONS if torch.backends.cudnn.allow_tf32 else ()
        self.names = convolutions + (_PRODUCTS if torch.backends.cuda.matmul.allow_tf32 else ())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).rpartition(".")[0]
        if name in self.names:
            args = list(args)
            # The last two matrices of addmm and baddbmm, the first two tensors of the others; a bias is added in float32.
            for i in (1, 2) if name in ("aten.addmm", "aten.baddbmm") else (0, 1):
                args[i] = rounded(args[i])
        return func(*args, **(kwargs or {}))


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """A float64 tensor with the 11 significant bits of TF32, to nearest (Dekker's splitting, Numer. Math. 18, 1971)."""
    if tensor.dtype is not torch.float64:
        return tensor
    scaled = tensor * (2.0**42 + 1)
    high = scaled - (scaled - tensor)
    return torch.where(torch.isfinite(high), high, tensor)


def used(oracle: Oracle, tree: tuple[Any, Any]) -> bool:
    """Whether torch takes TF32 at ``tree``: without it eager's answer is another one. False where memory is short."""
    try:
        usual = oracle.eager(tree)
        with _forbidden():
            exact = oracle.eager(tree)
    except torch.OutOfMemoryError:
        return False
    return not compare.agree(usual, exact, 0.0).passed


def error(oracle: Oracle, tree: tuple[Any, Any], reference: Reference, train: bool) -> float:
    """The largest relative error of the answer where products' operands are rounded; 0 where float64 is missing."""
    if reference.exact is None or reference.exact is reference.eager:
        return 0.0
    with _Rounding():
        found = oracle.exact(tree, train, reference.drawn)
    if found is None:
        return 0.0
    kinds = iter([leaf.dtype for leaf in pytree.tree_leaves(reference.eager) if isinstance(leaf, torch.Tensor)])
    near = pytree.tree_map(lambda leaf: leaf.to(next(kinds)) if isinstance(leaf, torch.Tensor) else leaf, found)
    return compare.compare(near, near, reference.exact).eager_error


@contextmanager
def _forbidden() -> Iterator[None]:
    """Within this context torch takes no TF32."""
    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products
