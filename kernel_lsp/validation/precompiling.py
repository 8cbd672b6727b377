"""All launches of several calls compiled at once, on all cores, before any of them is made.

Triton compiles a kernel anew for each divisibility and each size of one, seconds of work that a validation would
otherwise wait for one after the other.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation.launches import Launches


def shapes_of(tree: Any) -> Any:
    """A tree with what ``empty`` needs to know of its tensors in their place."""
    return pytree.tree_map(_described, tree)


def _described(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return {"empty": [str(value.dtype).removeprefix("torch."), list(value.shape), list(value.stride())]}


def empty(described: Any, device: torch.device) -> Any:
    """Tensors without values for what ``shapes_of`` gave; integers are zero, since they may be indices."""

    def make(value: Any) -> Any:
        if not _is_description(value):
            return value
        dtype, shape, stride = value["empty"]
        made = torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device=device)
        return made if made.dtype.is_floating_point else made.zero_()

    return pytree.tree_map(make, described, is_leaf=_is_description)


def _is_description(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["empty"]


class ZeroIntegers(TorchDispatchMode):
    """Fresh tensors of integers are zero: where launches are left out nothing writes to them, and they may be indices."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__.startswith(("empty", "new_empty")) and not result.dtype.is_floating_point:
            result.zero_()
        return result


def precompile(calls: Sequence[Callable[[], Any]], launches: Launches) -> None:
    """Make the calls with their launches compiled and left out. What fails here fails again where it counts."""
    launches.compiling = launches.graphs.refused = True
    try:
        with torch.no_grad(), _in_parallel(), ZeroIntegers(), _as_while_capturing():
            for call in calls:
                try:
                    call()
                except Exception:
                    traceback.print_exc()
    except Exception:
        traceback.print_exc()
    finally:
        launches.compiling = launches.graphs.refused = False


@contextlib.contextmanager
def _as_while_capturing() -> Iterator[None]:
    """A candidate that replays a CUDA graph launches directly, as it has to beside a capture of its caller's."""
    own = torch.cuda.is_current_stream_capturing
    torch.cuda.is_current_stream_capturing = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_current_stream_capturing = own


@contextlib.contextmanager
def _in_parallel() -> Iterator[None]:
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:  # then one after the other
        yield
        return
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool, AsyncCompileMode(pool):
        yield
