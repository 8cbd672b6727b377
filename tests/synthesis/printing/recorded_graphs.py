"""A stand-in for CUDA where there is none: graphs that record torch's operators on the CPU, and run them again on the same tensors.

So a replay reads and writes the memory that the capture did, as on a GPU. Streams and events do nothing: all is in order here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out


class Graph:
    """In place of ``torch.cuda.CUDAGraph``."""

    def capture_begin(self, **_: Any) -> None:
        self.mode = _Recording()
        self.mode.__enter__()

    def capture_end(self) -> None:
        self.mode.__exit__(None, None, None)

    def replay(self) -> None:
        for func, args, kwargs, out in self.mode.calls:
            again = func(*args, **kwargs)
            for old, new in zip(pytree.tree_leaves(out), pytree.tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


@contextmanager
def instead_of_cuda() -> Iterator[None]:
    """Within this context ``torch.cuda`` has such graphs."""
    names = ("Stream", "Event", "stream", "current_stream", "graph_pool_handle", "default_generators")
    nothing = {name: mock.MagicMock() for name in names}
    with mock.patch.multiple(torch.cuda, CUDAGraph=Graph, **nothing):
        yield
