"""Raises where an interpreted kernel loads or stores outside of the tensors that its launch was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter

from kernel_lsp.validation.guards import Guards


class Outside(Exception):
    """A load or a store outside of a launch's tensors."""


class Watch:
    """``guards``: the buffers of the call at hand, whose tensors lie between guards, which are outside."""

    def __init__(self) -> None:
        self.guards: Guards | None = None
        self._starts = self._ends = np.array([], dtype=np.int64)
        begin = interpreter.GridExecutor._init_args_hst
        builder = interpreter.InterpreterBuilder
        load, store = builder.create_masked_load, builder.create_masked_store

        def begun(executor: Any, arguments: Any, options: Any) -> Any:
            given = begin(executor, arguments, options)
            self._launch([*given[0], *given[1].values()])
            return given

        def loaded(own: Any, pointers: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            self._check(pointers, mask, "load")
            return load(own, pointers, mask, *rest, **named)

        def stored(own: Any, pointers: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            self._check(pointers, mask, "store")
            return store(own, pointers, value, mask, *rest, **named)

        interpreter.GridExecutor._init_args_hst = begun
        builder.create_masked_load, builder.create_masked_store = loaded, stored

    def _launch(self, given: list[Any]) -> None:
        guarded = {}
        for _, buffer, before, size, _ in self.guards.buffers if self.guards else []:
            start = buffer.data_ptr() + before
            guarded[buffer.untyped_storage().data_ptr()] = (start, start + size)
        spans = set()
        for storage in (t.untyped_storage() for t in given if hasattr(t, "untyped_storage")):
            start = storage.data_ptr()
            spans.add(guarded.get(start, (start, start + storage.nbytes())))
        self._starts, self._ends = np.array(sorted(spans), dtype=np.int64).reshape(-1, 2).T

    def _check(self, pointers: Any, mask: Any, what: str) -> None:
        places = np.asarray(pointers.data).astype(np.int64)
        taken = np.ones(places.shape, dtype=bool)
        if mask is not None:
            taken = np.broadcast_to(np.asarray(getattr(mask, "data", mask)), places.shape).astype(bool)
        places = places[taken]
        if not places.size or not self._starts.size:
            return
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        tensor = np.searchsorted(self._starts, places, side="right") - 1
        outside = (tensor < 0) | (places + size > self._ends[np.clip(tensor, 0, None)])
        if outside.any():
            start, end = (ends[max(int(tensor[outside][0]), 0)] for ends in (self._starts, self._ends))
            raise Outside(f"a {what} at byte {int(places[outside][0] - start)} of a tensor of {int(end - start)} bytes")
