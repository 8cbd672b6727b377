"""How many kernels an operator of torch launches on a GPU, and how often these go over what it reads and writes.

One kernel that reads its operands once and writes its result once is what most do. What does otherwise is named here, as read
in ATen's CUDA kernels of torch 2.11 (``aten/src/ATen/native``, the files are named).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

#: how many rows an operator has, from its arguments; each is one block of threads
Rows = Callable[[Any], int]


@dataclass(frozen=True)
class Cost:
    """``launches``; how often what it is given is read (``reads``) and what it gives is written (``writes``)."""

    launches: int = 1
    reads: float = 1.0
    writes: float = 1.0
    by_rows: Rows | None = None

    def rows(self, args: Any) -> int | None:
        """Rows of a call with ``args``, where each gets a block of threads; else None."""
        return self.by_rows(args) if self.by_rows is not None else None


def _around(args: Any) -> int:
    """Rows of a softmax: all but its dimension."""
    x, dim = args[0], args[1]
    return x.numel() // max(1, x.shape[dim]) if x.dim() else 1


def _norm_rows(args: Any) -> int:
    """Rows of a layer norm: all but the dimensions that it normalises."""
    x, shape = args[0], args[1]
    return x.numel() // max(1, math.prod(shape))


def _groups(args: Any) -> int:
    """Groups of a group norm, of all images."""
    return int(args[3]) * int(args[6])


def _channels(args: Any) -> int:
    return int(args[0].shape[1]) if args[0].dim() > 1 else 1


#: elements of a row from which on a softmax no longer keeps it in registers or in shared memory (SoftMax.cu)
_LONG_ROW = 8192


def _softmax(args: Any) -> Cost:
    x, dim = args[0], args[1]
    long = bool(x.dim()) and x.shape[dim] > _LONG_ROW
    return Cost(1, 3.0 if long else 1.0, 1.0, _around)


def _batch_norm(args: Any) -> Cost:
    """With running statistics it is elementwise; else the statistics are a pass of their own (Normalization.cu)."""
    training = bool(args[5]) if len(args) > 5 and isinstance(args[5], bool) else False
    return Cost(2, 2.0, 1.0, _channels) if training else Cost()


_LOSS = Cost(2, 1.5, 1.0)  # elementwise into memory, then a reduction (Loss.cpp)

#: operator → what it costs beside one kernel, or a function of its arguments
_COSTS: dict[str, Cost | Callable[[Any], Cost]] = {
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "native_layer_norm": Cost(1, 2.0, 1.0, _norm_rows),  # layer_norm_kernel.cu: moments, then the result
    "native_group_norm": Cost(3, 2.0, 1.0, _groups),  # group_norm_kernel.cu: moments, scale and shift, the result
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "logsumexp": Cost(7, 5.0, 2.0),  # ReduceOps.cpp: amax, abs, ==, where, sub and exp in place, sum, log and add
    "mse_loss": _LOSS,
    "smooth_l1_loss": _LOSS,
    "huber_loss": _LOSS,
    "binary_cross_entropy": _LOSS,
    "sort": Cost(4, 4.0, 2.0),  # Sort.cpp: keys and places go back and forth in radix passes
    "topk": Cost(2, 4.0, 1.0),
    "nonzero": Cost(3, 2.0, 1.0),
    "cumsum": Cost(1, 1.0, 1.0),
    "std_mean": Cost(1),
}

_NOTHING = frozenset(
    {
        "detach",
        "alias",
        "lift_fresh",
        "_unsafe_view",
        "_reshape_alias",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "sym_size",
        "_assert_async",
        "_assert_tensor_metadata",
        "scalar_tensor",
        "set_",
        "resize_",
    }
)
_WRITES = frozenset({"copy_", "fill_", "zero_"})
_PICKS = frozenset({"embedding", "index", "index_select", "gather", "_unsafe_index", "take"})


def _bare(func: Any) -> str:
    return str(func.overloadpacket).rpartition(".")[2]


def is_free(func: Any) -> bool:
    """Whether an operator launches nothing: a view, or memory that is not filled."""
    return bool(func.is_view) or func.namespace != "aten" or _bare(func) in _NOTHING


def only_writes(func: Any) -> bool:
    """Whether its first argument is overwritten unread."""
    return _bare(func) in _WRITES


def picks(func: Any) -> bool:
    """Whether it reads no more of its first argument than it gives."""
    return _bare(func) in _PICKS


def of(func: Any, args: Any) -> Cost:
    """What a call of an operator costs."""
    found = _COSTS.get(_bare(func), Cost())
    if isinstance(found, Cost):
        return found
    return found(args)


def is_pooling(name: str) -> bool:
    """Whether an operator, "aten.avg_pool2d", goes over windows."""
    return "pool" in name


def is_product(name: str) -> bool:
    """Whether an operator is a matrix product."""
    return name.removeprefix("aten.") in ("mm", "addmm", "bmm", "baddbmm", "dot", "mv", "addmv", "_scaled_mm")


def is_thin(operands: tuple[torch.Size, ...]) -> bool:
    """Whether a product has a matrix of one row or column: it is read once, and the rate of products does not matter."""
    return any(1 in shape for shape in operands)
