"""Errors that a GPU only finds while a kernel runs, raised before it does: there they end the process's CUDA context.

On the CPU torch raises an IndexError for an index out of range. On CUDA the kernel stops at a device-side assert, after
which no operation of the process works any more. The referee runs the module with sizes and values that the user never
gave it, and has to live on where the module does not take them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: (index, extent of what it goes into, whether it may count from the end, a value that is passed over)
Read = tuple[torch.Tensor, int, bool, int | None]


@contextlib.contextmanager
def raised(device: torch.device) -> Iterator[None]:
    """Within this context operators on ``device`` raise IndexError or ValueError where a CUDA kernel would assert."""
    with _Raising() if device.type == "cuda" else contextlib.nullcontext():
        yield


class _Raising(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__.removesuffix("_")
        reads = _READS.get(name)
        if reads is not None:
            given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
            for read in reads(given):
                _check(name, *read)
            if "offsets" in given and name.startswith("_embedding_bag"):
                _check_offsets(given["indices"], given["offsets"])
        elif name == "multinomial":
            _check_probabilities(args[0])
        return func(*args, **kwargs)


def _check(name: str, index: torch.Tensor, extent: int, negative: bool, ignored: int | None) -> None:
    """Raise the IndexError that torch's CPU kernels raise."""
    if index.dtype in (torch.bool, torch.uint8) or index.numel() == 0 or index.is_meta:
        return
    counted = index if ignored is None else index[index != ignored]
    if counted.numel() == 0:
        return
    low, high = (int(end) for end in torch.aminmax(counted))
    if high >= extent or low < (-extent if negative else 0):
        wrong = high if high >= extent else low
        raise IndexError(f"{name}: index {wrong} is out of bounds for dimension with size {extent}")


def _check_offsets(indices: torch.Tensor, offsets: torch.Tensor) -> None:
    """Raise a ValueError where ``offsets`` [bags] are none of bags that follow one another among the ``indices`` [n]: a bag that ends before it begins."""
    if offsets.numel() == 0 or offsets.is_meta:
        return
    ends = torch.cat([offsets, offsets.new_tensor([indices.shape[0]])])
    if int(offsets[0]) != 0 or bool((ends.diff() < 0).any()):
        raise ValueError(f"embedding_bag: offsets have to rise from 0 to at most {indices.shape[0]}")


def _check_probabilities(given: torch.Tensor) -> None:
    if not bool(((given >= 0) & torch.isfinite(given)).all()):
        raise ValueError("multinomial: a probability is negative, infinite or NaN")


def _embedding(given: dict[str, Any]) -> Iterator[Read]:
    yield given["indices"], given["weight"].shape[0], False, None


def _index(given: dict[str, Any]) -> Iterator[Read]:
    into = given["self"]
    dim = 0
    for index in given["indices"]:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            dim += index.dim()
            continue
        if index is not None:
            yield index, into.shape[dim], True, None
        dim += 1


def _along(given: dict[str, Any]) -> Iterator[Read]:
    into = given["self"]
    yield given["index"], into.shape[given["dim"]] if into.dim() else 1, False, None


def _take(given: dict[str, Any]) -> Iterator[Read]:
    yield given["index"], given["self"].numel(), True, None


def _target(given: dict[str, Any]) -> Iterator[Read]:
    scores = given["self"]
    yield given["target"], scores.shape[1] if scores.dim() > 1 else scores.shape[0], False, given.get("ignore_index")


def _targets(given: dict[str, Any]) -> Iterator[Read]:
    """Several for each row, which -1 ends."""
    yield given["target"], given["self"].shape[-1], False, -1


def _renorm(given: dict[str, Any]) -> Iterator[Read]:
    yield given["indices"], given["self"].shape[0], False, None


def _unpool(given: dict[str, Any]) -> Iterator[Read]:
    yield given["indices"], math.prod(given["output_size"]), False, None


#: operators, without the underscore of those that work in place → what they read or write by index
_READS: dict[str, Callable[[dict[str, Any]], Iterator[Read]]] = {
    **dict.fromkeys(("embedding", "_embedding_bag", "_embedding_bag_forward_only"), _embedding),
    **dict.fromkeys(("index", "_unsafe_index", "index_put", "_unsafe_index_put", "_index_put_impl"), _index),
    **dict.fromkeys(("index_select", "index_add", "index_copy", "index_fill", "index_reduce"), _along),
    **dict.fromkeys(("gather", "scatter", "scatter_add", "scatter_reduce"), _along),
    **dict.fromkeys(("take", "put"), _take),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "multi_margin_loss"), _target),
    **dict.fromkeys(("multilabel_margin_loss_forward", "multilabel_margin_loss"), _targets),
    "embedding_renorm": _renorm,
    **dict.fromkeys(("max_unpool2d", "max_unpool3d"), _unpool),
}
