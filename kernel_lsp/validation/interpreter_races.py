"""Program instances side by side, as a GPU may run them: none sees what another one of the launch has stored.

Triton's interpreter runs one instance after the other. A sum that instances add to without atomics, or an instance that goes on with what
the one before has stored, is right there and wrong on a GPU. So in some launches what an instance stores is taken back when it
ends, and stored again at the end of the launch, that of the first instance last. This is an order that a GPU may take, and the result is then compared as always.

Kernels with atomics are left alone: they may use them to wait for one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: bytes of what is stored in a launch up to which it is kept
_MOST_BYTES = 64 << 20


class SideBySide:
    """What the instances of the launch that runs have stored."""

    def __init__(self, library: Any) -> None:
        self.library = library  # reads and writes memory at arrays of addresses
        self.atomic: set[Any] = set()  # kernels that were seen to use atomics
        self.launched: set[Any] = set()  # kernels, and (kernel, grid) that were launched before
        self.kernel: Any = None
        self.active = False
        self.stored: list[list[tuple[Any, Any, Any]]] = []  # by instance: addresses, mask, bits
        self.before: list[tuple[Any, Any, Any]] = []  # the same of what the instance at hand has overwritten
        self.bytes = 0

    def launch(self, kernel: Any, grid: tuple[int, ...]) -> None:
        """A launch begins: instances run side by side the first time that a grid is seen, but for a kernel's first launch."""
        self.kernel = kernel
        seen = kernel in self.launched and (kernel, grid) not in self.launched
        self.launched |= {kernel, (kernel, grid)} if kernel in self.launched else {kernel}
        self.active = seen and kernel not in self.atomic and int(np.prod(grid)) > 1
        self.stored, self.before, self.bytes = [], [], 0

    def instance(self) -> None:
        """The next instance begins: what the last one has stored is taken back."""
        if self.active:
            for at, mask, bits in reversed(self.before):
                self.library.store(at, bits, mask)
            self.before = []
            self.stored.append([])

    def store(self, at: Any, mask: Any, dtype: Any, write: Any) -> None:
        """Have ``write`` store to addresses ``at`` where ``mask`` is, elements of the bits of ``dtype``."""
        if not self.active or not self.stored:
            write()
            return
        nothing = np.zeros(at.shape, dtype)
        before = self.library.load(at, mask, nothing, dtype)
        write()
        self.before.append((at, mask, before))
        self.stored[-1].append((at, mask, self.library.load(at, mask, nothing, dtype)))
        self.bytes += at.size * (8 + 1 + dtype.itemsize)
        if self.bytes > _MOST_BYTES:
            self.end()

    def atomics(self) -> None:
        """The kernel uses atomics: what instances have stored is seen by those after it."""
        self.atomic.add(self.kernel)
        self.end()

    def end(self) -> None:
        """The launch ends, or its instances run one after the other from here on."""
        if self.active:
            for stores in reversed(self.stored):
                for at, mask, bits in stores:
                    self.library.store(at, bits, mask)
        self.active = False
        self.stored, self.before = [], []


def install() -> SideBySide:
    """Let launches run side by side in this process."""
    from triton.runtime import interpreter

    kind, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    together = SideBySide(interpreter._interpreter)
    set_grid_dim, set_grid_idx, masked_store = kind.set_grid_dim, kind.set_grid_idx, kind.create_masked_store
    call = executor.__call__
    kernels: list[Any] = []

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernels.append(self.fn)
        try:
            return call(self, *args, **kwargs)
        finally:
            kernels.pop()
            together.end()

    def begin(self: Any, *grid: int) -> Any:
        together.launch(kernels[-1] if kernels else None, grid)
        return set_grid_dim(self, *grid)

    def instance(self: Any, *index: int) -> Any:
        together.instance()
        return set_grid_idx(self, *index)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        bits = max(8, ptrs.get_element_ty().primitive_bitwidth)
        write = lambda: masked_store(self, ptrs, value, mask, *rest)  # noqa: E731
        return together.store(ptrs.data, mask.data, np.dtype(f"uint{bits}"), write)

    def noting(original: Any) -> Any:
        def atomic(self: Any, *args: Any) -> Any:
            together.atomics()
            return original(self, *args)

        return atomic

    executor.__call__ = launched  # type: ignore[method-assign]
    kind.set_grid_dim, kind.set_grid_idx, kind.create_masked_store = begin, instance, store  # type: ignore[method-assign]
    for name in ("create_atomic_rmw", "create_atomic_cas"):
        setattr(kind, name, noting(getattr(kind, name)))
    return together
